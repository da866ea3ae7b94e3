//! The import `accounts`: takes the account that the export belongs to.

use crate::{
    bindings::satchel::importer::{accounts as wit, sink::Verdict},
    convert,
    run::CallState,
    sink_call::SinkCall,
};

impl wit::Host for CallState {
    fn emit_account(&mut self, account: wit::Account) -> wasmtime::Result<Verdict> {
        self.emit_to_sink(SinkCall::Account(convert::account(account)))
    }
}
