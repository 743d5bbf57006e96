//! The disk as programs see it.

use quorate_lab::disk::{Disk, Faults, Loss, Options};
use quorate_lab::process::ProcessId;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
/// For a program that this test binary runs as: writes to the file it names.
const WRITER: &str = "QUORATE_LAB_TEST_WRITER";

fn disk() -> Disk {
    Disk::new(Options::default()).unwrap()
}

fn cut(disk: &Disk, loss: Loss) {
    disk.power_off();
    disk.power_on(loss).unwrap();
}

/// Not a test by itself: a program that appends numbers and says which of them it has synced.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    for batch in 0u64.. {
        for number in batch * 100..(batch + 1) * 100 {
            // The power is cut before the program is killed.
            if file.write_all(&number.to_le_bytes()).is_err() {
                return;
            }
        }
        if batch % 3 == 2 {
            if file.sync_data().is_err() {
                return;
            }
            println!("synced {}", (batch + 1) * 100);
        }
    }
}

fn start_writer(path: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args(["--exact", "writer", "--nocapture"])
        .env(WRITER, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_program_finds_what_it_synced_after_a_power_cut() {
    let disk = disk();
    let path = disk.path().join("numbers");
    for (round, loss) in [
        Loss::All,
        Loss::TornLast { seed: 1 },
        Loss::TornLast { seed: 2 },
        Loss::Scattered { seed: 3 },
    ]
    .into_iter()
    .enumerate()
    {
        File::create(&path).unwrap().sync_all().unwrap();
        let mut writer = start_writer(&path);
        let mut synced = 0;
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        for line in lines.by_ref() {
            let line = line.unwrap();
            let Some((_, number)) = line.split_once("synced ") else { continue };
            synced = number.trim().parse().unwrap();
            if synced >= 3000 * (round as u64 + 1) {
                break;
            }
        }
        disk.power_off();
        writer.kill().unwrap();
        writer.wait().unwrap();
        disk.power_on(loss).unwrap();
        let found = fs::read(&path).unwrap();
        let numbers: Vec<u64> =
            found.chunks_exact(8).map(|n| u64::from_le_bytes(n.try_into().unwrap())).collect();
        assert!(numbers.len() as u64 >= synced, "{loss:?}: {} of {synced}", numbers.len());
        assert!((0..synced).zip(&numbers).all(|(wanted, found)| wanted == *found), "{loss:?}");
        if loss == Loss::All {
            assert_eq!(numbers.len() % 300, 0);
        }
    }
}

#[test]
fn a_mapping_is_lost_unless_synced() {
    // The kernel writes a mapping's pages out at msync, and at the latest when it is unmapped.
    let script = "import mmap, os, sys\n\
        f = os.open(sys.argv[1], os.O_RDWR)\n\
        m = mmap.mmap(f, 8192)\n\
        m[0:4] = b'kept'\n\
        m.flush()\n\
        m[4096:4100] = b'lost'\n\
        m.close()\n";
    let disk = disk();
    let path = disk.path().join("mapped");
    fs::write(&path, [0; 8192]).unwrap();
    let status = Command::new("python3").args(["-c", script]).arg(&path).status().unwrap();
    assert!(status.success());
    assert_eq!(fs::read(&path).unwrap()[4096..4100], *b"lost");
    cut(&disk, Loss::All);
    let left = fs::read(&path).unwrap();
    assert_eq!((&left[..4], &left[4096..4100]), (&b"kept"[..], &[0; 4][..]));
}

#[test]
fn direct_io_works() {
    const O_DIRECT: i32 = 0o40000;
    let disk = disk();
    let path = disk.path().join("direct");
    let file = OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .custom_flags(O_DIRECT)
        .open(&path)
        .unwrap();
    let mut buffer = vec![0; 3 * 4096];
    let start = buffer.as_ptr().align_offset(4096);
    buffer[start..start + 4096].fill(9);
    file.write_all_at(&buffer[start..start + 4096], 4096).unwrap();
    file.sync_all().unwrap();
    cut(&disk, Loss::All);
    let found = fs::read(&path).unwrap();
    assert!(found.len() == 8192 && found[..4096] == [0; 4096] && found[4096..] == [9; 4096]);
}

#[test]
fn a_tree_of_files_can_be_made_and_removed() {
    let disk = disk();
    let tree = disk.path().join("a/b/c");
    fs::create_dir_all(&tree).unwrap();
    for number in 0..500 {
        fs::write(tree.join(format!("file{number}")), format!("{number}")).unwrap();
    }
    std::os::unix::fs::symlink("file7", tree.join("link")).unwrap();
    fs::hard_link(tree.join("file8"), tree.join("hard")).unwrap();
    assert_eq!(fs::read_to_string(tree.join("link")).unwrap(), "7");
    assert_eq!(fs::read_dir(&tree).unwrap().count(), 502);
    fs::remove_dir_all(disk.path().join("a")).unwrap();
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
    disk.sync_all();
    assert_eq!(disk.used(), 0);
}

#[test]
fn syncs_fail_and_take_their_time() {
    let disk = disk();
    let mut file = File::create(disk.path().join("a")).unwrap();
    file.write_all(b"text").unwrap();
    disk.set_faults(Faults { sync_fails: true, ..Faults::default() });
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(5));
    disk.set_faults(Faults { sync_delay: 100 * MS, ..Faults::default() });
    let begin = Instant::now();
    file.sync_all().unwrap();
    assert!(begin.elapsed() >= 100 * MS);
    disk.set_faults(Faults { full: true, ..Faults::default() });
    assert_eq!(file.write_all_at(&[1; 9000], 0).unwrap_err().raw_os_error(), Some(28));
    disk.set_faults(Faults { writes_fail: true, ..Faults::default() });
    assert_eq!(file.write_all_at(b"x", 0).unwrap_err().raw_os_error(), Some(5));
    disk.set_faults(Faults::default());
    file.write_all_at(b"x", 0).unwrap();
}

#[test]
fn a_frozen_disk_goes_on_when_thawed_and_ends_at_a_power_cut() {
    let disk = disk();
    let file = File::create(disk.path().join("a")).unwrap();
    for power_cut in [false, true] {
        let file = file.try_clone().unwrap();
        disk.set_faults(Faults { frozen: true, ..Faults::default() });
        let (done, wait) = mpsc::channel();
        let worker = std::thread::spawn(move || done.send(file.write_all_at(b"x", 0)).unwrap());
        assert!(wait.recv_timeout(200 * MS).is_err());
        if power_cut {
            disk.power_off();
            assert!(wait.recv_timeout(20_000 * MS).unwrap().is_err());
        } else {
            disk.set_faults(Faults::default());
            wait.recv_timeout(20_000 * MS).unwrap().unwrap();
        }
        worker.join().unwrap();
    }
    disk.power_on(Loss::All).unwrap();
    fs::write(disk.path().join("b"), "x").unwrap();
}

#[test]
fn a_killed_program_whose_write_hangs_is_ending_until_the_write_returns() {
    let disk = disk();
    let path = disk.path().join("numbers");
    File::create(&path).unwrap();
    let mut writer = start_writer(&path);
    let process = ProcessId::of(writer.id()).unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("synced 300")));
    assert!(!process.is_ending());

    disk.set_faults(Faults { frozen: true, ..Faults::default() });
    assert!(disk.wait_held(20_000 * MS));
    writer.kill().unwrap();
    assert!(process.is_alive() && process.is_ending());
    assert!(!process.wait_gone(100 * MS).unwrap());
    assert!(process.is_alive() && process.is_ending());

    disk.set_faults(Faults::default());
    assert!(process.wait_gone(20_000 * MS).unwrap());
    writer.wait().unwrap();
    assert!(!process.is_alive() && !process.is_ending());
}

#[test]
fn an_ordinary_user_is_held_to_modes() {
    let disk = disk();
    let path = disk.path().join("a");
    fs::write(&path, "text").unwrap();
    let read_as_nobody = |mode: &str| {
        assert!(Command::new("chmod").arg(mode).arg(&path).status().unwrap().success());
        let id = ["--reuid=65534", "--regid=65534", "--clear-groups", "cat"];
        Command::new("setpriv").args(id).arg(&path).output().unwrap().status.success()
    };
    assert!(read_as_nobody("0644"));
    assert!(!read_as_nobody("0600"));
}

#[test]
fn nothing_is_left_of_a_disk() {
    let disk = disk();
    let path = disk.path().to_owned();
    // Also while somebody uses it.
    let open = File::create(path.join("a")).unwrap();
    drop(disk);
    assert!(!path.exists());
    assert!(open.sync_all().is_err());
}
