//! Generates the reference of the API, `daemon/docs/api.md`, from the comments of the contract, and checks that it is current.

use std::{
    collections::BTreeSet,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, ServiceDescriptor, Value,
};

type TestResult = Result<(), Box<dyn Error>>;

/// If it is set, the page is written instead of compared.
const BLESS: &str = "SATCHEL_BLESS";
const PACKAGE: &str = "satchel.v1";
const HEAD: &str = "\
# gRPC API

The reference of package `satchel.v1`, generated from the comments of `proto/satchel/v1/*.proto`. What all methods have in common (connecting,
paging, revisions, limits, errors) is in [the contract](../../proto/README.md); programs in Python and Node are in
[Clients in other languages](clients.md).

*Permission* is the scope that a device needs; the owner on the Unix socket has all of them. `optional` fields tell unset from empty.
";

/// The page, as it is written.
struct Reference {
    pool: DescriptorPool,
    page: String,
    /// Requests and responses, which are described with their methods.
    of_methods: BTreeSet<String>,
    /// Those of them that are described already.
    shown: BTreeSet<String>,
}

impl Reference {
    fn new() -> Result<Self, Box<dyn Error>> {
        let pool = DescriptorPool::decode(satchel_proto::DESCRIPTOR_SET)?;
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let of_methods = methods.flat_map(|method| [method.input(), method.output()]);
        let of_methods = of_methods.map(|message| message.full_name().to_owned()).collect();
        Ok(Self { pool, page: HEAD.to_owned(), of_methods, shown: BTreeSet::new() })
    }

    fn generate(mut self) -> Result<String, Box<dyn Error>> {
        let services: Vec<_> =
            self.pool.services().filter(|service| service.package_name() == PACKAGE).collect();
        self.page.push_str("\n| Service | |\n|---|---|\n");
        for service in &services {
            let comment = comment(&service.parent_file(), service.path());
            let first = comment.split("\n\n").next().unwrap_or_default();
            let anchor = service.name().to_lowercase();
            writeln!(self.page, "| [{}](#{anchor}) | {} |", service.name(), cell(first))?;
        }
        for service in &services {
            self.service(service)?;
        }
        self.page.push_str("\n## Messages\n");
        let messages: Vec<_> =
            self.pool.all_messages().filter(|message| message.package_name() == PACKAGE).collect();
        for message in messages {
            if !self.of_methods.contains(message.full_name()) && !message.is_map_entry() {
                writeln!(self.page, "\n### {}", local_name(message.full_name()))?;
                self.message(&message)?;
            }
        }
        self.page.push_str("\n## Enums\n");
        let enums: Vec<_> = self.pool.all_enums().filter(|one| one.package_name() == PACKAGE).collect();
        for one in enums {
            self.enumeration(&one)?;
        }
        Ok(self.page)
    }

    fn service(&mut self, service: &ServiceDescriptor) -> TestResult {
        writeln!(self.page, "\n## {}\n", service.name())?;
        self.page.push_str(&prose(&comment(&service.parent_file(), service.path())));
        for method in service.methods() {
            self.method(&method)?;
        }
        Ok(())
    }

    fn method(&mut self, method: &MethodDescriptor) -> TestResult {
        let stream = |is: bool| if is { "stream " } else { "" };
        writeln!(
            self.page,
            "\n### {}\n\n`{}{}` → `{}{}` · {}\n",
            method.name(),
            stream(method.is_client_streaming()),
            method.input().name(),
            stream(method.is_server_streaming()),
            method.output().name(),
            self.facts(method)?
        )?;
        self.page.push_str(&prose(&comment(&method.parent_service().parent_file(), method.path())));
        for message in [method.input(), method.output()] {
            if self.shown.insert(message.full_name().to_owned()) && message.fields().len() > 0 {
                writeln!(self.page, "\n**{}**", message.name())?;
                self.message(&message)?;
            }
        }
        Ok(())
    }

    /// Returns what the options of a method say.
    fn facts(&self, method: &MethodDescriptor) -> Result<String, Box<dyn Error>> {
        let options = method.options();
        let value = |name: &str| {
            let option = self.pool.get_extension_by_name(&format!("{PACKAGE}.{name}"));
            option.map(|option| options.get_extension(&option).into_owned()).ok_or("a method option")
        };
        let scopes = self.pool.get_enum_by_name("satchel.v1.Scope").ok_or("the scopes")?;
        let scope = value("required_scope")?.as_enum_number().and_then(|number| scopes.get_value(number));
        let scope =
            scope.ok_or("a scope")?.name().trim_start_matches("SCOPE_").to_lowercase().replace('_', "-");
        let mut facts = vec![match scope.as_str() {
            "none" => "no permission".to_owned(),
            "of-operation" => "permission of the operation".to_owned(),
            scope => format!("permission `{scope}`"),
        }];
        if value("mutates")? == Value::Bool(true) {
            facts.push("changes what is stored, or starts or stops work".to_owned());
        }
        if value("long_running")? == Value::Bool(true) {
            facts.push("takes as long as its work".to_owned());
        }
        Ok(facts.join(" · "))
    }

    /// Writes what a message is, and its fields.
    fn message(&mut self, message: &MessageDescriptor) -> TestResult {
        let text = comment(&message.parent_file(), message.path());
        if !text.is_empty() {
            write!(self.page, "\n{}", prose(&text))?;
        }
        if message.fields().len() > 0 {
            self.page.push_str("\n| Field | Type | |\n|---|---|---|\n");
        }
        for field in message.fields() {
            let text = comment(&message.parent_file(), field.path());
            let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
            let oneof = oneof.map(|oneof| format!("One of `{}`. ", oneof.name())).unwrap_or_default();
            let text = format!("{oneof}{}", cell(&text));
            writeln!(self.page, "| `{}` | {} | {} |", field.name(), self.kind(&field), text.trim_end())?;
        }
        Ok(())
    }

    fn enumeration(&mut self, one: &EnumDescriptor) -> TestResult {
        writeln!(self.page, "\n### {}\n", local_name(one.full_name()))?;
        let text = comment(&one.parent_file(), one.path());
        if !text.is_empty() {
            writeln!(self.page, "{}", prose(&text))?;
        }
        self.page.push_str("| Value | Number | |\n|---|---|---|\n");
        for value in one.values() {
            let text = comment(&one.parent_file(), value.path());
            writeln!(self.page, "| `{}` | {} | {} |", value.name(), value.number(), cell(&text))?;
        }
        Ok(())
    }

    fn kind(&self, field: &FieldDescriptor) -> String {
        let name = match field.kind() {
            Kind::Message(entry) if entry.is_map_entry() => {
                return format!(
                    "map of `{:?}` to `{:?}`",
                    entry.map_entry_key_field().kind(),
                    entry.map_entry_value_field().kind()
                );
            }
            Kind::Message(message) => self.link(message.full_name(), message.package_name()),
            Kind::Enum(one) => self.link(one.full_name(), one.package_name()),
            kind => format!("{kind:?}").to_lowercase(),
        };
        let label = match field.cardinality() {
            Cardinality::Repeated => "repeated ",
            _ if is_required(field) => "required ",
            _ if field.field_descriptor_proto().proto3_optional() => "optional ",
            _ => "",
        };
        format!("{label}{name}")
    }

    fn link(&self, full_name: &str, package: &str) -> String {
        if package != PACKAGE || self.of_methods.contains(full_name) {
            return format!("`{}`", full_name.trim_start_matches("satchel.v1."));
        }
        let name = local_name(full_name);
        format!("[{name}](#{})", name.to_lowercase().replace('.', ""))
    }
}

/// Returns whether `google.api.field_behavior` of the field is `REQUIRED`.
fn is_required(field: &FieldDescriptor) -> bool {
    let required = |behavior: &Value| behavior.as_enum_number() == Some(2);
    let pool = field.parent_pool();
    let behavior = pool.get_extension_by_name("google.api.field_behavior");
    behavior.is_some_and(|behavior| {
        field.options().get_extension(&behavior).as_list().is_some_and(|list| list.iter().any(required))
    })
}

fn local_name(full_name: &str) -> &str {
    full_name.trim_start_matches("satchel.v1.")
}

/// Returns the comment before a declaration, without the space after `//`.
fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let location = info.and_then(|info| info.location.iter().find(|location| location.path == path));
    let text = location.and_then(|location| location.leading_comments.as_deref()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// Returns paragraphs with one line each. Lists and indented lines keep their lines.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        let listed = paragraph.lines().any(|line| line.starts_with([' ', '-', '*']));
        out.push_str(&if listed { paragraph.to_owned() } else { paragraph.replace('\n', " ") });
        out.push('\n');
    }
    out.replace('<', "&lt;")
}

/// Returns the text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace("\n\n", "<br>").replace('\n', " ").replace('|', "\\|")
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../daemon/docs/api.md")
}

#[test]
fn the_reference_is_current() -> TestResult {
    let generated = Reference::new()?.generate()?;
    if env::var_os(BLESS).is_some() {
        fs::write(page(), generated)?;
        return Ok(());
    }
    let current = fs::read_to_string(page())?;
    assert!(
        current == generated,
        "daemon/docs/api.md differs from the contract; run the test with {BLESS}=1 to write it"
    );
    Ok(())
}

#[test]
fn every_declaration_has_a_comment() -> TestResult {
    let pool = DescriptorPool::decode(satchel_proto::DESCRIPTOR_SET)?;
    let mut silent = Vec::new();
    for service in pool.services().filter(|service| service.package_name() == PACKAGE) {
        for method in service.methods() {
            if comment(&service.parent_file(), method.path()).is_empty() {
                silent.push(method.full_name().to_owned());
            }
        }
    }
    for one in pool.all_enums().filter(|one| one.package_name() == PACKAGE) {
        if comment(&one.parent_file(), one.path()).is_empty() {
            silent.push(one.full_name().to_owned());
        }
    }
    assert!(silent.is_empty(), "without a comment: {silent:?}");
    Ok(())
}
