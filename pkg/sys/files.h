// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// All functions may block on the disk. Error codes: see ErrnoStatus.

// The whole of a regular file. kInvalidArgument if the path is not a regular file, or has more than
// `limit` bytes: a path may lead to any user's file, which must not fill our memory or make us wait
// for the writer of a FIFO. Symbolic links are followed.
StatusOr<std::string> ReadFile(const std::string& path, size_t limit);

// At most the first `size` bytes of a regular file. Other errors than for its length as ReadFile.
StatusOr<std::string> ReadBeginning(const std::string& path, size_t size);

// As ReadFile, for programs whose user names the file, which may also be a pipe. Waits for its end.
StatusOr<std::string> ReadInput(const std::string& path, size_t limit);
// The same of an open file, which has this name in messages.
StatusOr<std::string> ReadInput(int fd, const std::string& name, size_t limit);

// The names in a directory but hidden ones, sorted; empty if it cannot be read. At most 65,536,
// which is enough for the interrupts of a very large machine.
std::vector<std::string> NamesIn(const std::string& directory);

// After OK the file has this content and mode, even after a power failure. Until then, or after an
// error, it has its former content (the new one if only the directory could not be synced); readers
// never see a mixture. The text goes to `<path>.tmp` first, so a path may have only one writer at a
// time.
Status AtomicWriteFile(const std::string& path, std::string_view data, mode_t mode);

// Writes the bytes at the file's position. Returns how many were written: fewer than all only after
// an error, which is in errno.
size_t WriteFully(int fd, std::string_view bytes);

// Claims a directory for as long as the result is open. AlreadyExists: another process has claimed
// it.
StatusOr<UniqueFd> ClaimDirectory(const std::string& path);

// A failed system call as a status: "<what>: No such file or directory".
//   kNotFound            nothing is there
//   kAlreadyExists       something is there already
//   kInvalidArgument     the name or what it stands for does not fit the call
//   kResourceExhausted   no space, memory or fds left
//   kFailedPrecondition  the permissions are missing
//   kUnavailable         everything else
Status ErrnoStatus(int error, std::string_view what);

// Raises the number of files that this process may have open to its hard limit, but at most to
// 65,536, and returns that number. The usual soft limit of 1024 is for programs that use select().
size_t RaiseFileLimit();

}  // namespace resmgr
