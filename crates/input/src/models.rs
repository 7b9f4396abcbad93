//! Which files a `--model` flag names: `[NAME=]FILE`, named after the file unless a name is given; of a
//! folder every table in it, by name. Which of the models a strategy reads is the registry's rule.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Ending of a table's file name in a folder of models.
pub const ENDING: &str = "plbtab";

/// A model and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelFile {
    /// What strategies call it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl ModelFile {
    /// As a flag takes it.
    pub fn flag(&self) -> OsString {
        let mut flag = OsString::from(format!("{}=", self.name));
        flag.push(&self.path);
        flag
    }

    fn named_after(path: PathBuf) -> Self {
        let stem = path.file_stem().unwrap_or_default();
        Self {
            name: stem.to_string_lossy().into_owned(),
            path,
        }
    }
}

/// A flag as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFlag {
    name: Option<String>,
    path: PathBuf,
}

impl FromStr for ModelFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (Some(name.to_string()), path),
            None => (None, text),
        };
        if path.is_empty() || name.as_ref().is_some_and(String::is_empty) {
            return Err("expected FILE, FOLDER or NAME=FILE".into());
        }
        Ok(Self {
            name,
            path: PathBuf::from(path),
        })
    }
}

impl ModelFlag {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files it stands for; a folder may hold none.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn files(&self) -> io::Result<Vec<ModelFile>> {
        let path = self.path.clone();
        match &self.name {
            Some(name) => Ok(vec![ModelFile {
                name: name.clone(),
                path,
            }]),
            None if path.is_dir() => in_folder(&path),
            None => Ok(vec![ModelFile::named_after(path)]),
        }
    }
}

/// Every table of a folder, by name.
///
/// # Errors
/// It cannot be read.
pub fn in_folder(folder: &Path) -> io::Result<Vec<ModelFile>> {
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ENDING) {
            found.push(ModelFile::named_after(path));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::ModelFlag;
    use std::fs;

    fn files(text: &str) -> Result<Vec<(String, String)>, String> {
        let flag: ModelFlag = text.parse()?;
        let files = flag.files().map_err(|e| e.to_string())?;
        let pair = |m: super::ModelFile| (m.name, m.path.display().to_string());
        Ok(files.into_iter().map(pair).collect())
    }

    #[test]
    fn a_model_is_named_or_takes_the_name_of_its_file() {
        let one = |name: &str, path: &str| Ok(vec![(name.to_string(), path.to_string())]);
        assert_eq!(files("a/live.plbtab"), one("live", "a/live.plbtab"));
        assert_eq!(files("x=a/b=c.plbtab"), one("x", "a/b=c.plbtab"));
        assert!(["=f", "x=", ""].iter().all(|text| files(text).is_err()));
    }

    #[test]
    fn of_a_folder_every_table_comes_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().to_str().expect("text");
        assert_eq!(files(text), Ok(Vec::new()));
        for name in ["b.plbtab", "a.plbtab", "c.json"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let names = files(text).expect("models").into_iter().map(|f| f.0);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }
}
