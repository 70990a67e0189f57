//! Messages on the wire, where one that cannot be read is a failure like any other: typed, with a
//! code that says whose fault it is. (gRPC's own choice is INTERNAL, a fault of ours.)

use std::fmt;
use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

use crate::ToolError;

use super::status::status;

/// The codec of this protocol's services; generated code names it.
pub(crate) struct Codec<T, U>(PhantomData<fn() -> (T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = Reader<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        Reader(PhantomData)
    }
}

/// The reading half.
pub(crate) struct Reader<U>(PhantomData<fn() -> U>);

impl<U: Message + Default> Decoder for Reader<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(buffer).map(Some).map_err(|error| status(&unreadable(&error)))
    }
}

/// Says what is wrong, and not on which path through the message: in deep nesting that is a path of
/// kilobytes.
fn unreadable(error: &impl fmt::Display) -> ToolError {
    let text = error.to_string();
    let reason = text.rsplit(": ").next().unwrap_or(&text);
    ToolError::invalid_arguments(format!("the message cannot be read: {reason}"))
        .with_hint("arguments may be nested about 48 levels deep, and every text must be UTF-8")
}
