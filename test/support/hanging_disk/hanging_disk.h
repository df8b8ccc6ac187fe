// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "pkg/sys/unique_fd.h"

struct fuse_attr;
struct fuse_in_header;

namespace resmgr::test {

// Files and directories in memory that speak the kernel's FUSE protocol (linux/fuse.h): only the
// operations that a daemon uses for its state and its dump. Not thread-safe.
class MemoryFiles {
 public:
  MemoryFiles();

  // The answer to one request of the kernel, header included; "" if it wants none.
  std::string Answer(std::string_view request);

  // A file's content by its path; nullopt without such a file.
  std::optional<std::string> Content(std::string_view path) const;

 private:
  struct Node {
    uint32_t mode = 0;
    std::string content{};
    std::map<std::string, uint64_t, std::less<>> entries{};  // of a directory
  };

  // The bytes behind the answer's header, or an error (negative errno).
  struct Result {
    int error = 0;
    std::string body{};
  };

  Result Handle(const fuse_in_header& header, std::string_view body);
  Result Init(std::string_view body) const;
  Result LookUp(uint64_t parent, std::string_view name) const;
  Result Make(uint64_t parent, std::string_view name, uint32_t mode, bool open);
  Result Rename(uint64_t from, uint64_t to, std::string_view names);
  Result Remove(uint64_t parent, std::string_view name);
  Result SetAttributes(uint64_t id, std::string_view body);
  Result Read(uint64_t id, std::string_view body) const;
  Result List(uint64_t id, std::string_view body) const;
  Result Write(uint64_t id, std::string_view body);

  fuse_attr AttributesOf(uint64_t id) const;
  std::string EntryOf(uint64_t id) const;
  // Nodes are never freed: the kernel may still ask for removed ones.
  Node& At(uint64_t id) { return nodes_[id - 1]; }
  const Node& At(uint64_t id) const { return nodes_[id - 1]; }

  std::deque<Node> nodes_;  // the first is the root
};

// A file system (FUSE, in memory) that stops answering on command, as a disk does whose controller
// or network is gone: every system call on it then waits inside the kernel, each write, sync and
// rename included. Seen by the thread that mounts it and by the processes that this thread starts.
//
// Thread-safe. The caller must not touch the mounted directory while the disk hangs.
class HangingDisk {
 public:
  HangingDisk() = default;
  // Lets all calls that wait for it fail.
  ~HangingDisk();
  HangingDisk(const HangingDisk&) = delete;
  HangingDisk& operator=(const HangingDisk&) = delete;

  // False where the kernel or the rights of this process do not allow it. Once.
  bool MountOn(const std::string& directory);

  // From now on no new call returns; calls under way may.
  void Hang();
  // The calls that wait go on.
  void Answer();
  // Waits until a call hangs; false if none does in time.
  bool WaitForCall(std::chrono::milliseconds timeout);

  // A file's content, past the kernel: also while the disk hangs. The path is relative.
  std::optional<std::string> Content(const std::string& path);

 private:
  void Serve();
  void Wake();
  bool hangs();

  std::string directory_;
  UniqueFd device_;
  UniqueFd wake_;  // an eventfd
  std::mutex mutex_;
  bool hangs_ = false;
  bool ending_ = false;
  MemoryFiles files_;
  std::thread thread_;
};

}  // namespace resmgr::test
