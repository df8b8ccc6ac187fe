// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The host's side of the files: a directory, this process's alone, with one directory for each
// container, which has the file. A container has its own directory mounted, so it sees a file that
// takes the place of the former one; a mount of the file itself would keep the former one.
//
// Everything blocks on the disk, and is for one thread at a time. No symbolic link is followed
// below the path. Error codes: see ErrnoStatus; AlreadyExists: another process has the
// directory; FailedPrecondition: it belongs to another user, or others may write there.
class CpuFileDirectory {
 public:
  // Absolute. Nothing is touched yet.
  explicit CpuFileDirectory(std::string path) : path_(std::move(path)) {}

  // Writes the text into the file of this name at once: a reader sees the former text or this one.
  // Makes missing directories.
  Status Make(const std::string& name, std::string_view text);
  // As Make, but NotFound where the container has no directory.
  Status Replace(const std::string& name, std::string_view text);
  // Removes the directory and its file. OK if it does not exist.
  Status Remove(const std::string& name);
  // The directories of containers, in no order; empty where the parent does not exist.
  StatusOr<std::vector<std::string>> List();

 private:
  // Opens the directory, and claims it against other processes for the life of this object.
  Status Open(bool make);
  Status WriteIn(const std::string& name, std::string_view text) const;

  std::string path_;
  UniqueFd directory_;
};

// The text of the file (docs/cpu-file.md, pkg/adr/0008-cpu-file.md): lines NAME=LIST, which a shell
// can source, with lists as the kernel writes them ("0,3-7", "" for none). `exclusive` is a part of
// `cpus`.
std::string CpuFileText(const CpuSet& cpus, const CpuSet& exclusive, const NodeSet& mems);

// The name of a container's directory on the host, known before the runtime gives an id: that of
// its pod sandbox, its own name and its attempt, "SANDBOX_NAME_ATTEMPT", with all but letters,
// digits and "-" of the first two as %XX. No two containers have the same. Empty if it would be
// longer than file systems allow, which names of Kubernetes never are.
std::string CpuFileDirectoryName(std::string_view sandbox, std::string_view container,
                                 uint32_t attempt);
// Parts of that name: the beginning for all containers of sandboxes whose id begins with `sandbox`,
// and the end for all containers with this name and attempt.
std::string CpuFileDirectoryPrefix(std::string_view sandbox);
std::string CpuFileDirectorySuffix(std::string_view container, uint32_t attempt);

}  // namespace resmgr
