mod plain;
mod table;
