//! How long a command may run, and what that leaves for ending it.

use std::time::{Duration, Instant};

/// Between SIGTERM and SIGKILL when a command's time is up.
const GRACE: Duration = Duration::from_secs(2);

/// Kept back before a deadline that is not ours: killing, reaping and the last events.
const RESERVE: Duration = Duration::from_millis(300);

/// The least of it: on a busy machine the ends of three processes have to get their turn.
const LEAST_RESERVE: Duration = Duration::from_millis(20);

/// With less time than this nothing is started: a shell needs a few milliseconds to come up, and
/// what it did would have to be reported in time as well.
const LEAST: Duration = Duration::from_millis(40);

/// When a command's time is up, and how long it has from then on to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// When it is asked to end.
    pub time_up: Instant,
    /// How long after that it is killed.
    pub grace: Duration,
    /// Whose limit it is.
    pub limit: TimeLimit,
}

/// Whose limit ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// The call's own timeout.
    Timeout,
    /// The caller's deadline, which comes first.
    Deadline,
}

/// The deadline leaves no time to run anything and report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ms are left until the deadline, too few to start a command", .0.as_millis())]
pub struct TooLate(pub Duration);

impl Budget {
    /// A command that starts `now` may run for `timeout`, and everything must be over by
    /// `deadline`. Where that is too close for both, the grace is cut before the run.
    ///
    /// # Errors
    /// [`TooLate`] where the deadline is too close for anything.
    pub fn new(
        now: Instant,
        timeout: Duration,
        deadline: Option<Instant>,
    ) -> Result<Self, TooLate> {
        let own = Self { time_up: now + timeout, grace: GRACE, limit: TimeLimit::Timeout };
        let Some(deadline) = deadline else { return Ok(own) };
        let left = deadline.saturating_duration_since(now);
        if left < LEAST {
            return Err(TooLate(left));
        }
        let reserve = (left / 10).clamp(LEAST_RESERVE, RESERVE);
        if timeout + GRACE + reserve <= left {
            return Ok(own);
        }
        if timeout + reserve < left {
            // The timeout itself fits; only the grace has to be shorter.
            let grace = left - reserve - timeout;
            if grace >= left / 4 || grace >= GRACE / 4 {
                return Ok(Self { grace, ..own });
            }
        }
        let grace = GRACE.min(left / 4);
        let run = left - reserve - grace;
        Ok(Self { time_up: now + run, grace, limit: TimeLimit::Deadline })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_timeout_with_room_after_it_gets_the_whole_grace() {
        let now = Instant::now();
        for deadline in [None, Some(now + ms(13_000))] {
            let budget = Budget::new(now, ms(10_000), deadline).unwrap();
            assert_eq!(budget.time_up, now + ms(10_000));
            assert_eq!((budget.grace, budget.limit), (GRACE, TimeLimit::Timeout));
        }
    }

    #[test]
    fn an_early_deadline_ends_the_run_before_it() {
        let now = Instant::now();
        let budget = Budget::new(now, ms(120_000), Some(now + ms(10_000))).unwrap();
        assert_eq!(budget.limit, TimeLimit::Deadline);
        assert_eq!((budget.time_up, budget.grace), (now + ms(7_700), GRACE));
        let budget = Budget::new(now, ms(120_000), Some(now + ms(1_000))).unwrap();
        assert_eq!((budget.time_up, budget.grace), (now + ms(650), ms(250)));
        let budget = Budget::new(now, ms(120_000), Some(now + ms(40))).unwrap();
        assert_eq!((budget.time_up, budget.grace), (now + ms(10), ms(10)));
    }

    #[test]
    fn a_deadline_just_after_the_timeout_costs_grace_only() {
        let now = Instant::now();
        let budget = Budget::new(now, ms(10_000), Some(now + ms(11_300))).unwrap();
        assert_eq!((budget.time_up, budget.grace), (now + ms(10_000), ms(1_000)));
        assert_eq!(budget.limit, TimeLimit::Timeout);
    }

    #[test]
    fn a_deadline_that_has_almost_come_is_too_late() {
        let now = Instant::now();
        assert_eq!(Budget::new(now, ms(1), Some(now + ms(39))), Err(TooLate(ms(39))));
        assert_eq!(Budget::new(now, ms(1), Some(now)), Err(TooLate(ms(0))));
    }

    proptest! {
        #[test]
        fn everything_fits_before_the_deadline(timeout in 1u64..700_000, left in 0u64..700_000) {
            let now = Instant::now();
            let deadline = now + ms(left);
            let Ok(budget) = Budget::new(now, ms(timeout), Some(deadline)) else {
                prop_assert!(ms(left) < LEAST);
                return Ok(());
            };
            prop_assert!(budget.time_up + budget.grace <= deadline);
            prop_assert!(budget.time_up <= now + ms(timeout));
        }
    }
}
