//! Credentials in the command, the arguments and the address of an extension, which people write there in place of its environment.

use satchel_importer::address::unsigned;

/// What stands in place of a credential.
pub(crate) const REMOVED: &str = "[removed]";
/// How the names of options, variables and headers with a credential end.
const NAMES: [&str; 15] = [
    "key",
    "keys",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "pat",
    "pwd",
];
/// How keys and tokens of known services begin.
const PREFIXES: [&str; 20] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AIza",
    "AKIA",
    "ASIA",
    "hf_",
    "npm_",
    "eyJ",
    "ntn_",
    "figd_",
];
/// The shortest text that can be such a key.
const MIN_KEY: usize = 16;

/// Replaces the credentials in the arguments of a command, one after the other.
#[derive(Default)]
pub(crate) struct Arguments {
    /// The option before it has a credential as its value.
    follows_name: bool,
}

impl Arguments {
    /// The next argument without a credential.
    pub(crate) fn next(&mut self, argument: &str) -> String {
        let is_option = argument.starts_with('-') && argument.len() > 1;
        let hidden = std::mem::take(&mut self.follows_name) && !is_option;
        let bare = argument.trim_start_matches(['"', '\'']);
        let name = bare.strip_suffix(':');
        // The header of a request may be in several words: `Authorization: Bearer …`.
        let scheme = ["bearer", "basic"].iter().any(|scheme| bare.eq_ignore_ascii_case(scheme));
        self.follows_name = scheme
            || name.is_some_and(names_credential)
            || (is_option && !argument.contains('=') && names_credential(argument));
        if hidden || is_key(argument) {
            return REMOVED.to_owned();
        }
        let Some(at) = argument.find(['=', ':']) else { return argument.to_owned() };
        let (name, value) = argument.split_at(at);
        let (sign, value) = value.split_at(1);
        if value.is_empty() {
            return argument.to_owned();
        }
        if names_credential(name) || is_key(value) {
            return format!("{name}{sign}{REMOVED}");
        }
        match argument.split_once("://") {
            Some(_) if sign == "=" => format!("{name}={}", address(value)),
            Some(_) => address(argument),
            None => argument.to_owned(),
        }
    }
}

/// A command with its arguments in one text, without credentials.
pub(crate) fn command(text: &str) -> String {
    let mut arguments = Arguments::default();
    // The spaces stay as they are: a path may have several.
    let words: Vec<String> = text.split(' ').map(|word| arguments.next(word)).collect();
    words.join(" ")
}

/// An address without its signature, single passwords, or a user with a password.
pub(crate) fn address(text: &str) -> String {
    let text = unsigned(text);
    let Some((scheme, rest)) = text.split_once("://") else { return text.into_owned() };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_end);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let segments: Vec<&str> = path.split('/').map(|part| if is_key(part) { REMOVED } else { part }).collect();
    let mut clean = format!("{scheme}://{host}{}", segments.join("/"));
    if let Some(query) = query {
        let mut arguments = Arguments::default();
        let parameters: Vec<String> = query.split('&').map(|part| arguments.next(part)).collect();
        clean.push('?');
        clean.push_str(&parameters.join("&"));
    }
    clean
}

/// Whether an option, a variable or a header with this name has a credential: its last word says so.
fn names_credential(name: &str) -> bool {
    let name = name.trim_end_matches(|sign: char| !sign.is_ascii_alphanumeric()).to_ascii_lowercase();
    let word = name.rsplit(|sign: char| !sign.is_ascii_alphanumeric()).next().unwrap_or_default();
    NAMES.contains(&word)
        || ["apikey", "accesskey", "secretkey", "token", "password"].iter().any(|end| word.ends_with(end))
}

/// Whether a text looks like the key of a known service.
fn is_key(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() >= MIN_KEY
        && PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        && text.bytes().all(plain)
        && text.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lose_their_credentials() {
        for (given, left) in [
            (
                "-y @example/server --api-key SECRET --port 8080",
                "-y @example/server --api-key [removed] --port 8080",
            ),
            ("--api-key=SECRET", "--api-key=[removed]"),
            ("--token SECRET -v", "--token [removed] -v"),
            ("--token -v", "--token -v"),
            ("-e GITHUB_TOKEN=SECRET -e LANG=C", "-e GITHUB_TOKEN=[removed] -e LANG=C"),
            ("-e GITHUB_TOKEN image:1.2", "-e GITHUB_TOKEN image:1.2"),
            ("--header Authorization:SECRET", "--header Authorization:[removed]"),
            ("--header X-Api-Key:SECRET", "--header X-Api-Key:[removed]"),
            ("Bearer SECRET", "Bearer [removed]"),
            ("--header \"Authorization: Bearer SECRET\"", "--header \"Authorization: [removed] [removed]"),
            ("--header X-Api-Key: SECRET -v", "--header X-Api-Key: [removed] -v"),
            ("ghp_0123456789abcdefSECRET", "[removed]"),
            ("--db postgresql://me:SECRET@db.example/a", "--db postgresql://db.example/a"),
            ("--url=https://a.example/sse?token=SECRET", "--url=https://a.example/sse?token=[removed]"),
            ("C:\\Tools\\server.exe /home/a b", "C:\\Tools\\server.exe /home/a b"),
            ("--author me --monkey no sk-learn-extension", "--author me --monkey no sk-learn-extension"),
        ] {
            assert_eq!(command(given), left);
        }
        let mut arguments = Arguments::default();
        assert_eq!(arguments.next("Authorization: Bearer SECRET"), "Authorization:[removed]");
    }

    #[test]
    fn addresses_lose_their_credentials() {
        for (given, left) in [
            ("https://mcp.example/sse?api_key=SECRET&a=1", "https://mcp.example/sse?api_key=[removed]&a=1"),
            ("https://mcp.example/sse?api_key=0a1B2c3D4e5F.6g-&a=1", "https://mcp.example/sse?a=1"),
            (
                "https://mcp.example/sse?exampleApiKey=SECRET",
                "https://mcp.example/sse?exampleApiKey=[removed]",
            ),
            ("https://me:SECRET@mcp.example:8080/a@b", "https://mcp.example:8080/a@b"),
            ("https://mcp.example/s/sk-0123456789SECRET/mcp", "https://mcp.example/s/[removed]/mcp"),
            ("https://mcp.example/mcp?profile=work#top", "https://mcp.example/mcp?profile=work#top"),
            ("http://localhost:3000/sse", "http://localhost:3000/sse"),
            ("stdio", "stdio"),
        ] {
            assert_eq!(address(given), left);
        }
    }
}
