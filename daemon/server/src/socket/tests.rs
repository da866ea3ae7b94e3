//! Tests of binding and finding the socket.
#![expect(clippy::unwrap_used, reason = "tests")]

use tokio::net::UnixStream;

use super::*;

fn mode(path: &Path) -> u32 {
    super::mode(&fs::metadata(path).unwrap())
}

#[tokio::test]
async fn the_socket_is_closed_to_others_and_removed_with_its_listener() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::bind(dir.path(), dir.path()).unwrap();
    let path = socket_path(dir.path()).unwrap().unwrap();
    assert_eq!((listener.path(), mode(&path)), (path.as_path(), 0o600));
    UnixStream::connect(&path).await.unwrap();
    drop(listener);
    assert_eq!(socket_path(dir.path()).unwrap(), None);
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(dir.path().join(SOCKET_FILE)).unwrap());
    let _listener = Listener::bind(dir.path(), dir.path()).unwrap();
    UnixStream::connect(socket_path(dir.path()).unwrap().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_socket_with_a_long_path_is_in_the_runtime_folder() {
    let runtime = tempfile::tempdir().unwrap();
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("d".repeat(120));
    fs::create_dir(&data).unwrap();
    let listener = Listener::bind(&data, &runtime.path().join("run")).unwrap();
    let path = socket_path(&data).unwrap().unwrap();
    assert!(path.starts_with(runtime.path()) && path == listener.path());
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    UnixStream::connect(&path).await.unwrap();
    drop(listener);
    assert_eq!(socket_path(&data).unwrap(), None);
}

#[tokio::test]
async fn a_runtime_folder_open_to_others_is_refused() {
    let runtime = tempfile::tempdir().unwrap();
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("d".repeat(120));
    fs::create_dir(&data).unwrap();
    let folder = runtime.path().join("satchel");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Listener::bind(&data, &folder);
    assert!(matches!(refused, Err(SocketError::OpenToOthers { mode: 0o777, .. })));
}

/// Creates a data directory whose path is too long for a socket.
fn data_dir_with_long_path(base: &Path) -> PathBuf {
    let data = base.join("d".repeat(120));
    fs::create_dir(&data).unwrap();
    data
}

#[test]
fn the_runtime_folder_belongs_to_the_user_or_has_the_user_id_in_its_name() {
    let (private, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let uid = rustix::process::geteuid().as_raw();
    let shared = temporary.path().join(format!("satchel-{uid}"));
    let chosen = |user_dir: Option<&Path>| default_runtime_dir(user_dir, temporary.path());
    fs::set_permissions(private.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(chosen(Some(private.path())), private.path().join("satchel"));
    assert_eq!(chosen(None), shared);
    assert_eq!(chosen(Some(Path::new("run/user/1"))), shared);
    assert_eq!(chosen(Some(&private.path().join("missing"))), shared);
    fs::set_permissions(private.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(chosen(Some(private.path())), shared, "open to others");
    if uid == 0 {
        fs::set_permissions(private.path(), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(private.path(), Some(4_711), None).unwrap();
        assert_eq!(chosen(Some(private.path())), shared, "another user's");
    }
}

#[tokio::test]
async fn a_runtime_folder_whose_name_is_taken_is_refused() {
    let (base, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = data_dir_with_long_path(base.path());
    let folder = default_runtime_dir(None, temporary.path());
    let refusal = || Listener::bind(&data, &folder).unwrap_err().to_string();
    // A link that another user created is refused, even if it leads to a folder of ours.
    std::os::unix::fs::symlink(base.path(), &folder).unwrap();
    assert!(refusal().contains("is a symbolic link; use a shorter data directory"), "{}", refusal());
    fs::remove_file(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    assert!(refusal().contains("is not a folder"), "{}", refusal());
    fs::remove_file(&folder).unwrap();
    if rustix::process::geteuid().as_raw() == 0 {
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(4_711), None).unwrap();
        assert!(refusal().contains("belongs to user 4711, not to you"), "{}", refusal());
        fs::remove_dir(&folder).unwrap();
    }
    let listener = Listener::bind(&data, &folder).unwrap();
    assert_eq!(mode(&folder), 0o700);
    drop(listener);
}

#[tokio::test]
async fn clients_find_a_daemon_that_was_started_with_another_runtime_folder() {
    let base = tempfile::tempdir().unwrap();
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = data_dir_with_long_path(base.path());
    // The first daemon is killed, and leaves its socket and its pointer file behind.
    let (socket, files) = Listener::bind(&data, &one.path().join("run")).unwrap().into_parts();
    std::mem::forget(files);
    drop(socket);
    let second = Listener::bind(&data, &other.path().join("run")).unwrap();
    let found = socket_path(&data).unwrap().unwrap();
    assert!(found == second.path() && found.starts_with(other.path()), "{found:?}");
    UnixStream::connect(&found).await.unwrap();
}

#[tokio::test]
async fn a_socket_of_the_service_manager_in_another_runtime_folder_is_detected() {
    let base = tempfile::tempdir().unwrap();
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = data_dir_with_long_path(base.path());
    let run = one.path().join("run");
    make_private(&run).unwrap();
    let managed = StdListener::bind(listen_path(&data, &run).unwrap()).unwrap();
    // A daemon served it before, and wrote the pointer file for clients.
    drop(Listener::inherit(managed.try_clone().unwrap(), &data, &run).unwrap());
    let refused = Listener::bind(&data, &other.path().join("run"));
    assert!(matches!(refused, Err(SocketError::InUse { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_socket_of_the_service_manager_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let _managed = StdListener::bind(dir.path().join(SOCKET_FILE)).unwrap();
    let refused = Listener::bind(dir.path(), dir.path());
    assert!(matches!(refused, Err(SocketError::InUse { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_inherited_socket_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SOCKET_FILE);
    let managed = StdListener::bind(&path).unwrap();
    let listener = Listener::inherit(managed.try_clone().unwrap(), dir.path(), dir.path()).unwrap();
    assert_eq!(listener.path(), path);
    drop(listener);
    UnixStream::connect(socket_path(dir.path()).unwrap().unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_inherited_socket_that_clients_would_not_find_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let managed = StdListener::bind(dir.path().join("other.sock")).unwrap();
    let refused = Listener::inherit(managed, dir.path(), dir.path());
    assert!(matches!(refused, Err(SocketError::WrongPath { .. })), "{refused:?}");
}

#[tokio::test]
async fn touching_a_socket_updates_its_times() {
    let dir = tempfile::tempdir().unwrap();
    let (_socket, files) = Listener::bind(dir.path(), dir.path()).unwrap().into_parts();
    let old = Timespec { tv_sec: 1_000, tv_nsec: 0 };
    let times = Timestamps { last_access: old, last_modification: old };
    rustix::fs::utimensat(CWD, &files.path, &times, AtFlags::empty()).unwrap();
    files.touch().unwrap();
    let metadata = fs::metadata(&files.path).unwrap();
    assert!(metadata.mtime() > 1_000 && metadata.atime() > 1_000);
}

#[tokio::test]
async fn two_long_paths_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("d".repeat(120));
    fs::create_dir(&data).unwrap();
    assert!(matches!(Listener::bind(&data, &data), Err(SocketError::TooLong { .. })));
}
