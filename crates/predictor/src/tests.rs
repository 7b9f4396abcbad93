mod catboost;
mod export;
mod golden;
mod plain;
mod table;
