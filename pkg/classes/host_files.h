// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Small files of the kernel, by their path from the root of the host without the slash in front
// ("proc/irq/24/smp_affinity"). A directory that is made and removed, such as a group of resctrl,
// counts as a file, too: "DIRECTORY/." reads as kThere or as nothing; writing kThere makes the
// directory, writing nothing removes it. Reading and writing may block. Thread-compatible.
class HostFiles {
 public:
  // The longest file is /proc/interrupts: a very large machine has megabytes.
  static constexpr size_t kMostBytes = size_t{16} << 20;
  static constexpr std::string_view kThere = "there\n";

  virtual ~HostFiles() = default;

  // NotFound: the file does not exist, or its device or cgroup is gone. InvalidArgument: it is not
  // a regular file, too long, or not plain text. kMountsFile and kInterruptsFile may have any
  // bytes.
  virtual StatusOr<std::string> Read(const std::string& path) = 0;
  // Replaces the value. Returns 0, or the kernel's error number.
  virtual int Write(const std::string& path, std::string_view text) = 0;
  // The names in a directory, up to a limit. Empty if the directory does not exist.
  virtual std::vector<std::string> List(const std::string& directory) = 0;
};

// The files below `root`.
class RealHostFiles final : public HostFiles {
 public:
  // `in_hand` is called with each path before the file is used, on the thread that uses it.
  RealHostFiles(std::string_view root, std::function<void(std::string_view path)> in_hand);

  StatusOr<std::string> Read(const std::string& path) override;
  int Write(const std::string& path, std::string_view text) override;
  std::vector<std::string> List(const std::string& directory) override;

 private:
  std::string PathOf(const std::string& path) const;
  StatusOr<std::string> ReadDirectory(const std::string& whole) const;
  StatusOr<std::string> ReadSocket(const std::string& whole);
  int WriteSocket(const std::string& whole, std::string_view text);

  // The mask that was last sent to irqbalance. irqbalance applies it in its next round, usually
  // within ten seconds, and reports the former one until then.
  struct Told {
    std::string text;
    std::chrono::steady_clock::time_point until;
  };

  const std::string root_;  // ends with a slash
  const std::function<void(std::string_view)> in_hand_;
  std::map<std::string, Told, std::less<>> told_;  // by socket
};

// Whether the file is one of the kernel's, which take a value with each write. Others are on a
// disk, such as irqbalance's environment file, or in /run.
bool IsOfKernel(std::string_view path);

// Whether the path ends with "/.", so that it stands for the directory itself.
bool IsDirectoryPath(std::string_view path);

// Paths of HostFiles that several kinds of classes use.
inline constexpr const char* kCgroupRoot = "sys/fs/cgroup";
inline constexpr const char* kMountsFile = "proc/mounts";
inline constexpr const char* kInterruptsFile = "proc/interrupts";
inline constexpr const char* kNewInterruptsMask = "proc/irq/default_smp_affinity";
inline constexpr const char* kWorkqueuesMask = "sys/devices/virtual/workqueue/cpumask";

// The file's text without white space around it, and its words; empty if it cannot be read.
std::string ReadText(HostFiles& files, const std::string& path);
std::vector<std::string> ReadWords(HostFiles& files, const std::string& path);
// The CPUs that are online; empty if that cannot be read.
CpuSet OnlineCpus(HostFiles& files);
// Whether the host has cgroup v2.
bool HasCgroupV2(HostFiles& files);
// NotFound: cgroup v2 does not have this controller, or the host has no cgroup v2.
Status CheckController(HostFiles& files, std::string_view controller);
// Whether the cgroup is the root of a valid partition.
bool IsPartition(HostFiles& files, std::string_view cgroup);

// "cannot write 0-3 to FILE: Input/output error"; codes of ErrnoStatus.
Status WriteError(int error, std::string_view path, std::string_view text);
// The same with the reason that the kernel gives for the last refusal of a write to resctrl.
Status ResctrlWriteError(int error, std::string_view path, std::string_view text, HostFiles& files);

// The wanted value of a file of the host. "DIRECTORY/." stands for the directory itself
// (HostFiles).
struct HostValue {
  std::string path;
  std::string text;
  // If not empty: all values of a plan with this name are written, or none of them.
  std::string together{};
  // If not empty: the file is restored to this value in the end, and not to its present one, unless
  // the journal has a former value already.
  std::string first{};

  friend bool operator==(const HostValue&, const HostValue&) = default;
};

// Whether a file that reads `a` has the value `b`, although the text may differ: masks of CPUs may
// have other digits, the kernel keeps whole pages of memory, rounds bandwidth up, ...
bool SameHostValue(std::string_view path, std::string_view a, std::string_view b);
// The part of `text` that can be written to a file that reads `now`: all but the masks of caches
// that are offline.
std::string WritableValue(std::string_view path, std::string_view text, std::string_view now);

// The value of the file in a new cgroup, for files with limits of memory and block I/O that a
// runtime can set at creation; "" if unknown, or for other files.
std::string_view FreshValue(std::string_view path);

// The value in a form for people: trimmed, with "; " between lines.
std::string HostValueLine(std::string_view text);

// Gives files of cgroups with a line for each block device (io.max, io.weight,
// blkio.throttle.read_bps_device, ...) the behaviour of other files: they read as a text in a fixed
// form, and writing a text removes all lines that it lacks. The kernel takes one device with each
// write. Other files pass unchanged. Thread-compatible.
class DeviceLines final : public HostFiles {
 public:
  // `files` must outlive this object.
  explicit DeviceLines(HostFiles& files) : files_(files) {}

  StatusOr<std::string> Read(const std::string& path) override;
  // Writes the lines that differ, and goes on after a line that the kernel refuses; returns the
  // first error.
  int Write(const std::string& path, std::string_view text) override;
  std::vector<std::string> List(const std::string& directory) override {
    return files_.List(directory);
  }

 private:
  HostFiles& files_;
};

// Whether each device's line in `now`, a text of such a file, is also in one of `texts`: so it is
// after a write that changed only some lines.
bool MixesDeviceLines(std::string_view path, std::string_view now,
                      const std::vector<std::string_view>& texts);

// A text of such a file in the form that DeviceLines reads: lines ordered by device, "default" in
// front, without lines that set no limit.
std::string NormalDeviceLines(std::string_view path, std::string_view text);

}  // namespace resmgr
