//! Structs that are read from JSON objects only.
//!
//! A derived reader also takes a list of a struct's values in the order of its fields: a damaged file would
//! be read with values in the wrong places. Structs derived with `#[serde(remote = "Self")]` refuse it.

/// The reader of structs that are derived so: an object with named fields and nothing else.
macro_rules! objects {
    ($($name:ident),+ $(,)?) => {$(
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;
                impl<'de> ::serde::de::Visitor<'de> for ObjectVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("an object with named fields")
                    }
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(
                        self,
                        map: A,
                    ) -> Result<$name, A::Error> {
                        // The derived reader, which is no trait's.
                        $name::deserialize(::serde::de::value::MapAccessDeserializer::new(map))
                    }
                }
                reader.deserialize_map(ObjectVisitor)
            }
        }
    )+};
}

/// The writer of the same structs: as derived.
macro_rules! written {
    ($($name:ident),+ $(,)?) => {$(
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, writer)
            }
        }
    )+};
}

pub(crate) use {objects, written};

#[cfg(test)]
mod tests {
    use crate::header::{ApiName, Axis, Header, R2, Shape, Splits, TrainedOn};
    use serde::de::DeserializeOwned;

    fn refuses_lists<T: DeserializeOwned>() {
        for list in ["[]", "[1, 2]", r#"["active", [1.0]]"#] {
            let told = serde_json::from_str::<T>(list).err().map(|e| e.to_string());
            let told = told.unwrap_or_else(|| panic!("read from {list}"));
            assert!(
                told.contains("expected an object with named fields"),
                "{told}"
            );
        }
    }

    #[test]
    fn no_struct_of_a_header_is_read_from_a_list() {
        refuses_lists::<Header>();
        refuses_lists::<Splits>();
        refuses_lists::<R2>();
        refuses_lists::<TrainedOn>();
        refuses_lists::<Axis>();
        refuses_lists::<Shape>();
        refuses_lists::<ApiName>();
    }
}
