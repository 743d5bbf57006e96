//! The two disks that are compared: the lab's, and ext4 on a loop device whose power is cut.

use anyhow::{ensure, Context, Result};
use quorate_lab::disk::{Disk, Faults, Loss, Options};
use quorate_lab::leftovers::Folder;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Somewhere to keep files, which can be full and lose its power.
pub trait Place: Sync {
    fn path(&self) -> &Path;
    /// From now on whatever needs space gets ENOSPC.
    fn fill(&self) -> Result<()>;
    fn make_room(&self) -> Result<()>;
    /// Nothing that is written from now on is kept, nor what was not synced. Programs that use it
    /// are to be killed then.
    fn cut_power(&self) -> Result<()>;
    /// There is room then. With a seed, the lab's disk may keep some of what was not synced, sector by
    /// sector.
    fn power_on(&self, keeps: Option<u64>) -> Result<()>;
}

impl Place for Disk {
    fn path(&self) -> &Path {
        Disk::path(self)
    }

    fn fill(&self) -> Result<()> {
        self.set_faults(Faults { full: true, ..Faults::default() });
        Ok(())
    }

    fn make_room(&self) -> Result<()> {
        self.set_faults(Faults::default());
        Ok(())
    }

    fn cut_power(&self) -> Result<()> {
        self.power_off();
        Ok(())
    }

    fn power_on(&self, keeps: Option<u64>) -> Result<()> {
        let loss = keeps.map_or(Loss::All, |seed| {
            [Loss::All, Loss::TornLast { seed }, Loss::Scattered { seed }][seed as usize % 3]
        });
        Disk::power_on(self, loss).map(drop)
    }
}

pub fn lab_disk(capacity: u64) -> Result<Disk> {
    Disk::new(Options { capacity, ..Options::default() })
}

/// ext4 in a file.
pub struct Ext4 {
    mount: PathBuf,
    image: PathBuf,
    _folder: Folder,
}

impl Ext4 {
    pub fn new(capacity: u64) -> Result<Ext4> {
        let folder = Folder::new()?;
        let (image, mount) = (folder.path().join("image"), folder.path().join("disk"));
        fs::create_dir(&mount)?;
        File::create(&image)?.set_len(capacity)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096", "-m", "0"]).arg(&image))?;
        let place = Ext4 { mount, image, _folder: folder };
        place.mount()?;
        Ok(place)
    }

    fn mount(&self) -> Result<()> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.mount))
    }

    fn ballast(&self) -> PathBuf {
        self.mount.join("ballast")
    }
}

impl Place for Ext4 {
    fn path(&self) -> &Path {
        &self.mount
    }

    fn fill(&self) -> Result<()> {
        let mut ballast = OpenOptions::new().create(true).append(true).open(self.ballast())?;
        for piece in [1 << 20, 1 << 12] {
            let bytes = vec![1; piece];
            loop {
                match ballast.write_all(&bytes).and_then(|()| ballast.sync_data()) {
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    written => written?,
                }
            }
        }
        Ok(())
    }

    fn make_room(&self) -> Result<()> {
        match fs::remove_file(self.ballast()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn cut_power(&self) -> Result<()> {
        // EXT4_IOC_SHUTDOWN without a last commit of the journal: nothing reaches the device from now on.
        let shutdown = "import fcntl, os, struct, sys\n\
            f = os.open(sys.argv[1], os.O_RDONLY)\n\
            fcntl.ioctl(f, 0x8004587d, struct.pack('I', 2))\n";
        run(Command::new("python3").args(["-c", shutdown]).arg(&self.mount))
    }

    fn power_on(&self, _keeps: Option<u64>) -> Result<()> {
        run(Command::new("umount").arg(&self.mount))?;
        self.mount()?;
        self.make_room()
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("umount").arg(&self.mount)) {
            eprintln!("{error:#}");
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
