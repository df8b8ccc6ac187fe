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

// The files on the host: a directory that belongs to this process alone, with a directory for each
// container, which has the file. The container has its directory mounted, not the file: a mounted
// file would still be the old one after a new file has replaced it.
//
// Everything blocks on the disk, and is for one thread at a time. No symbolic link is followed
// below the path. Error codes: see ErrnoStatus; AlreadyExists: another process has the directory;
// FailedPrecondition: it belongs to another user, or others may write there.
class CpuFileDirectory {
 public:
  // `path` is absolute. Nothing is opened yet.
  explicit CpuFileDirectory(std::string path) : path_(std::move(path)) {}

  // Makes missing directories and replaces the file of this name by this text in one step: a reader
  // sees either the former text or the new one.
  Status Make(const std::string& name, std::string_view text);
  // As Make, but NotFound if the container has no directory.
  Status Replace(const std::string& name, std::string_view text);
  // Removes the directory and its file. OK if it does not exist.
  Status Remove(const std::string& name);
  // The directories of containers, in no order; empty if the parent does not exist.
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

// The name of a container's directory on the host, which has to be known before the runtime gives
// an id: "SANDBOX_NAME_ATTEMPT", from the pod sandbox, the container's name and its attempt, with
// all characters but letters, digits and "-" of the first two as %XX. It is unique. Empty if it
// would be longer than file systems allow, which names of Kubernetes never are.
std::string CpuFileDirectoryName(std::string_view sandbox, std::string_view container,
                                 uint32_t attempt);
// Parts of CpuFileDirectoryName: the beginning for all containers of sandboxes whose id begins with
// `sandbox`, and the end for all containers with this name and attempt.
std::string CpuFileDirectoryPrefix(std::string_view sandbox);
std::string CpuFileDirectorySuffix(std::string_view container, uint32_t attempt);

}  // namespace resmgr
