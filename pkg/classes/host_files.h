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

namespace resmgr {

// Small files of the kernel, by their path from the root of the host without the slash in front
// ("proc/irq/24/smp_affinity"). A directory that is made and removed, as a group of resctrl, is a
// file, too: "DIRECTORY/." reads kThere or nothing, and is written likewise. Reading and writing
// may block. Thread-compatible.
class HostFiles {
 public:
  // The longest one is /proc/interrupts: a very large machine has megabytes.
  static constexpr size_t kMostBytes = size_t{16} << 20;
  static constexpr std::string_view kThere = "there\n";

  virtual ~HostFiles() = default;

  // NotFound: the file does not exist, or its device or cgroup is gone. InvalidArgument: it is not
  // a regular file, too long, or not plain text.
  virtual StatusOr<std::string> Read(const std::string& path) = 0;
  // Replaces the value. 0, or the error number of the kernel.
  virtual int Write(const std::string& path, std::string_view text) = 0;
  // The names in a directory; the first ones of a very long one. Empty if there is none.
  virtual std::vector<std::string> List(const std::string& directory) = 0;
};

// The files below `root`.
class RealHostFiles final : public HostFiles {
 public:
  // `in_hand` is called with each path before it is touched, on the thread that does it.
  RealHostFiles(std::string_view root, std::function<void(std::string_view path)> in_hand);

  StatusOr<std::string> Read(const std::string& path) override;
  int Write(const std::string& path, std::string_view text) override;
  std::vector<std::string> List(const std::string& directory) override;

 private:
  std::string PathOf(const std::string& path) const;
  StatusOr<std::string> ReadDirectory(const std::string& whole) const;
  StatusOr<std::string> ReadSocket(const std::string& whole);
  int WriteSocket(const std::string& whole, std::string_view text);

  // irqbalance applies a new mask in its next round, usually within ten seconds, and reports its
  // old one until then.
  struct Told {
    std::string text;
    std::chrono::steady_clock::time_point until;
  };

  const std::string root_;  // ends with a slash
  const std::function<void(std::string_view)> in_hand_;
  std::map<std::string, Told, std::less<>> told_;  // by socket
};

// Whether the path stands for the directory itself.
bool IsDirectoryPath(std::string_view path);

// "cannot write 0-3 to FILE: Input/output error"; codes of ErrnoStatus.
Status WriteError(int error, std::string_view path, std::string_view text);

// The wanted value of a file of the host. "DIRECTORY/." stands for the directory itself, as a file
// that reads "there" or nothing (HostFiles).
struct HostValue {
  std::string path;
  std::string text;
  // Not empty: all values of a plan with the same name are written, or none of them.
  std::string together{};
  // If not empty: the value that the file gets back in the end, in place of its present one, unless
  // the journal has one already.
  std::string first{};

  friend bool operator==(const HostValue&, const HostValue&) = default;
};

// Whether a file that reads `a` has the value `b`: masks of CPUs may have other digits, the kernel
// keeps whole pages of memory, rounds bandwidth up, ...
bool SameHostValue(std::string_view path, std::string_view a, std::string_view b);

// The value of the file in a fresh cgroup v2, for files with limits of memory and block I/O that a
// runtime can set when it creates a container; "": not known, or no such file.
std::string_view FreshValue(std::string_view path);

// The value in a form for people: trimmed, with "; " between lines.
std::string HostValueLine(std::string_view text);

// Makes files of cgroups that have a line for each block device (io.max, io.weight,
// blkio.throttle.read_bps_device, ...) files like others: one reads them as a text in a fixed form,
// and writing a text leaves no line that is not in it. The kernel takes one device with each write.
// Other files pass unchanged. Thread-compatible.
class DeviceLines final : public HostFiles {
 public:
  // Outlives this object.
  explicit DeviceLines(HostFiles& files) : files_(files) {}

  StatusOr<std::string> Read(const std::string& path) override;
  // Writes the lines that differ, also after one that the kernel refuses; the first error.
  int Write(const std::string& path, std::string_view text) override;
  std::vector<std::string> List(const std::string& directory) override {
    return files_.List(directory);
  }

 private:
  HostFiles& files_;
};

// Whether each device's line in `now`, a text of such a file, is also in one of the other texts, as
// after a write of only some lines.
bool MixesDeviceLines(std::string_view path, std::string_view now,
                      const std::vector<std::string_view>& texts);

// A text of such a file in the form that DeviceLines reads: lines in the order of their devices,
// "default" in front, without those that say that there is no limit.
std::string NormalDeviceLines(std::string_view path, std::string_view text);

}  // namespace resmgr
