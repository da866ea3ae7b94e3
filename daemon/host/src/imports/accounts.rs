//! The import `accounts`: takes the account that the export belongs to.

use crate::{
    bindings::satchel::importer::{accounts as wit, sink::Verdict},
    convert,
    delivery::Delivery,
    run::State,
};

impl wit::Host for State {
    fn emit_account(&mut self, account: wit::Account) -> wasmtime::Result<Verdict> {
        self.answer(Delivery::Account(convert::account(account)))
    }
}
