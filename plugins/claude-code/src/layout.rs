//! Where the files lie: `projects/<project>/<session>.jsonl`, and what belongs to a session beside it.

use satchel_importer::names;

const SUBAGENTS: &str = "/subagents/";
const TOOL_RESULTS: &str = "/tool-results/";
const MEMORY: &str = "memory/";
const AGENT: &str = "agent-";

/// Whether the name is that of a file of lines.
pub(crate) fn is_lines(path: &str) -> bool {
    names::has_extension(path, "jsonl")
}

/// Whether the file describes the subagent whose session lies beside it.
pub(crate) fn is_agent_description(path: &str) -> bool {
    let name = names::split(path).1;
    name.starts_with(AGENT) && name.ends_with(".meta.json")
}

/// The file that describes the subagent of the session at `path`.
pub(crate) fn agent_description(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".jsonl")?;
    names::split(stem).1.starts_with(AGENT).then(|| format!("{stem}.meta.json"))
}

/// The name of a file without its extension.
pub(crate) fn stem(path: &str) -> &str {
    let name = names::split(path).1;
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The folder of the project of a session or of a file beside it, with its last `/`.
pub(crate) fn project(path: &str) -> &str {
    for part in [SUBAGENTS, TOOL_RESULTS] {
        // `<project>/<session>/subagents/…`
        if let Some(at) = path.find(part) {
            return names::split(&path[..at]).0;
        }
    }
    names::split(path).0
}

/// The name of the folder of a project.
pub(crate) fn project_name(folder: &str) -> &str {
    names::split(folder.trim_end_matches('/')).1
}

/// Whether the path is that of the full output of a tool.
pub(crate) fn is_tool_result(path: &str) -> bool {
    path.contains(TOOL_RESULTS)
}

/// The path at which the full output of a tool lies in the export. `stated` is where it was on the machine of the session; `session` is the
/// path of the session's file.
pub(crate) fn tool_result(session: &str, stated: &str) -> String {
    let name = stated.rsplit(['/', '\\']).next().unwrap_or(stated);
    let session = session.strip_suffix(".jsonl").unwrap_or(session);
    // The results of subagents lie with those of the main session.
    let folder = session.find(SUBAGENTS).map_or(session, |at| &session[..at]);
    format!("{folder}{TOOL_RESULTS}{name}")
}

/// The memory file of a project: its project's folder and its name.
pub(crate) fn memory_file(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = names::split(path);
    let project =
        folder.strip_suffix(MEMORY).filter(|project| project.is_empty() || project.ends_with('/'))?;
    names::has_extension(name, "md").then_some((project, name))
}

/// The root above `projects/<project>/`, where the memory file of the person lies.
pub(crate) fn root(project: &str) -> Option<&str> {
    let above = names::split(project.trim_end_matches('/')).0;
    above.strip_suffix("projects/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_session_belong_to_its_project() {
        for path in ["p/x/s.jsonl", "p/x/s/subagents/agent-1.jsonl", "p/x/s/tool-results/a.txt"] {
            assert_eq!(project(path), "p/x/", "{path}");
        }
        assert_eq!(project("s.jsonl"), "");
        assert_eq!((project_name("p/x/"), project_name("")), ("x", ""));
        assert_eq!(root("a/projects/x/"), Some("a/"));
        assert_eq!(root("projects/x/"), Some(""));
        assert_eq!(root("x/"), None);
    }

    #[test]
    fn full_outputs_are_found_wherever_the_session_was() {
        let expected = "x/s/tool-results/a.txt";
        for stated in
            ["/home/m/.claude/projects/x/s/tool-results/a.txt", "C:\\x\\tool-results\\a.txt", "a.txt"]
        {
            assert_eq!(tool_result("x/s.jsonl", stated), expected);
            assert_eq!(tool_result("x/s/subagents/agent-1.jsonl", stated), expected);
        }
        assert!(is_tool_result(expected) && !is_tool_result("x/s.jsonl"));
    }

    #[test]
    fn memory_files_lie_in_the_folder_of_a_project() {
        assert_eq!(memory_file("x/memory/a.md"), Some(("x/", "a.md")));
        assert_eq!(memory_file("memory/a.md"), Some(("", "a.md")));
        for path in ["inmemory/a.md", "x/memory/a.txt", "x/a.md"] {
            assert_eq!(memory_file(path), None, "{path}");
        }
        assert!(is_agent_description("x/agent-1.meta.json") && !is_agent_description("x/s.meta.json"));
        assert_eq!(agent_description("x/agent-1.jsonl").as_deref(), Some("x/agent-1.meta.json"));
    }
}
