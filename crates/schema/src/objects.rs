//! Structs that are read from JSON objects only, wherever they stand in a document.
//!
//! A derived reader also takes a list of a struct's values in the order of its fields, which no format here
//! means: a list would be read with values in the wrong places. A struct derived with
//! `#[serde(remote = "Self")]` and named in [`objects!`](crate::objects) refuses it. For the whole of a
//! document, and for structs that are only read, there is [`Fields`](crate::json::Fields).

/// Gives structs that derive `Serialize` and `Deserialize` with `#[serde(remote = "Self")]` a reader that
/// takes an object with named fields and nothing else. They are written as derived.
#[macro_export]
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

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, writer)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use crate::event::{Candidate, Event, Member};
    use crate::json::Fields;
    use crate::manifest::{
        Arm, Backend, Burn, Host, Manifest, Model, Versions, WorkerLimits, Workload,
    };
    use crate::protection::{Ejection, Rules};
    use crate::report::Report;
    use crate::stats::Stats;
    use crate::work_left::WorkLeft;
    use serde::de::DeserializeOwned;

    fn refuses_lists<T: DeserializeOwned>() {
        let name = std::any::type_name::<T>();
        for list in ["[]", "[1]", "[\"a\", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"] {
            let told = serde_json::from_str::<T>(list).err().map(|e| e.to_string());
            let told = told.unwrap_or_else(|| panic!("{name} was read from {list}"));
            let expected = "invalid type: sequence, expected an object with named fields at line 1";
            assert!(told.starts_with(expected), "{name}: {told}");
        }
    }

    #[test]
    fn no_struct_of_a_file_is_read_from_a_list() {
        refuses_lists::<Member>();
        refuses_lists::<Candidate>();
        refuses_lists::<Report>();
        refuses_lists::<Rules>();
        refuses_lists::<Ejection>();
        refuses_lists::<Stats>();
        refuses_lists::<WorkLeft>();
        refuses_lists::<Manifest>();
        refuses_lists::<Versions>();
        refuses_lists::<Model>();
        refuses_lists::<Host>();
        refuses_lists::<Backend>();
        refuses_lists::<WorkerLimits>();
        refuses_lists::<Burn>();
        refuses_lists::<Workload>();
        refuses_lists::<Arm>();
        refuses_lists::<Fields<Event>>();
    }

    /// Within a tagged line too, which is gathered before it is read.
    #[test]
    fn a_list_is_refused_wherever_it_stands() {
        let line =
            |member: &str| format!(r#"{{"event":"backends","t_ns":1,"change":"add",{member}}}"#);
        let named = r#""id":0,"name":"a","weight":4,"cores":4.0,"memory_mib":1.0"#;
        assert!(serde_json::from_str::<Event>(&line(named)).is_ok());
        let pick = |candidate: &str| {
            format!(
                r#"{{"event":"pick","t_ns":1,"request_id":"r","method":"GET","url":"/","class":0,"attempt":0,"candidates":[{candidate}],"pick_ns":1}}"#
            )
        };
        assert!(serde_json::from_str::<Event>(&pick(r#"{"id":0,"in_flight":1}"#)).is_ok());
        let told = serde_json::from_str::<Event>(&pick("[0,1,null,null,null,null,null]"));
        assert!(
            told.unwrap_err()
                .to_string()
                .contains("expected an object with named fields")
        );
    }
}
