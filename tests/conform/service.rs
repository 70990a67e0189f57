//! Where the generated code looks for its codec.

pub(crate) mod codec {
    pub(crate) use tonic_prost::ProstCodec as Codec;
}
