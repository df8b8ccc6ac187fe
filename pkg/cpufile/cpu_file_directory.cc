// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_directory.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/characters.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr mode_t kBaseMode = 0711;  // containers reach their files by a mount, not by this path
constexpr mode_t kContainerMode = 0755;  // for every user in the container
constexpr mode_t kFileMode = 0644;
// Limit of names in the directory: more than a machine can run containers, since files of former
// containers may be left.
constexpr size_t kMostNames = 65'536;
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// The file's name in the directory that a container has mounted.
const std::string kFile = "cpus.env";
const std::string kTemporary = "." + kFile + ".tmp";

Status CheckOwner(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return ErrnoStatus(errno, "cannot look at it");
  if (found.st_uid != ::geteuid()) {
    return FailedPrecondition("it belongs to user {}, and this process is user {}", found.st_uid,
                              ::geteuid());
  }
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return FailedPrecondition("other users may write there (its mode is {:o})",
                              found.st_mode & 07777U);
  return OkStatus();
}

// Opens a directory. `make`: makes a missing one, with this mode whatever the umask is.
StatusOr<UniqueFd> OpenAt(int directory, const std::string& name, mode_t mode, bool make) {
  const bool made = make && ::mkdirat(directory, name.c_str(), mode) == 0;
  if (make && !made && errno != EEXIST)
    return ErrnoStatus(errno, fmt::format("cannot make directory {}", name));
  UniqueFd fd(::openat(directory, name.c_str(), kOpenDirectory));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("cannot open directory {}", name));
  if (made && ::fchmod(fd.get(), mode) != 0)
    return ErrnoStatus(errno, fmt::format("cannot set the mode of {}", name));
  return fd;
}

Status WriteFileAt(int directory, std::string_view text) {
  UniqueFd fd(::openat(directory, kTemporary.c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!fd.valid()) return ErrnoStatus(errno, "open");
  if (::fchmod(fd.get(), kFileMode) != 0) return ErrnoStatus(errno, "chmod");
  if (WriteFully(fd.get(), text) < text.size()) return ErrnoStatus(errno, "write");
  if (::close(fd.Release()) != 0) return ErrnoStatus(errno, "close");
  if (::renameat(directory, kTemporary.c_str(), directory, kFile.c_str()) != 0)
    return ErrnoStatus(errno, "rename");
  return OkStatus();
}

constexpr size_t kLongestName = 255;  // NAME_MAX

bool IsPlain(char c) {
  return IsLetterOrDigit(c) || c == '-';
}

void AppendEscaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (IsPlain(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace

Status CpuFileDirectory::Open(bool make) {
  if (directory_.valid()) return OkStatus();
  if (make) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    if (error)
      return ErrnoStatus(error.value(), fmt::format("cannot make the parent of {}", path_));
  }
  RESMGR_ASSIGN_OR_RETURN(UniqueFd directory, OpenAt(AT_FDCWD, path_, kBaseMode, make));
  RESMGR_RETURN_IF_ERROR(Annotate(CheckOwner(directory.get()), path_));
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return AlreadyExists("another process uses {}", path_);
    return ErrnoStatus(errno, fmt::format("cannot claim {}", path_));
  }
  directory_ = std::move(directory);
  return OkStatus();
}

Status CpuFileDirectory::Make(const std::string& name, std::string_view text) {
  RESMGR_RETURN_IF_ERROR(Open(true));
  Status made = OpenAt(directory_.get(), name, kContainerMode, true).status();
  if (made.code() == StatusCode::kNotFound) {
    // The directory was removed while it was open, perhaps with all files.
    directory_.Reset();
    RESMGR_RETURN_IF_ERROR(Open(true));
    made = OpenAt(directory_.get(), name, kContainerMode, true).status();
  }
  RESMGR_RETURN_IF_ERROR(made);
  return WriteIn(name, text);
}

Status CpuFileDirectory::Replace(const std::string& name, std::string_view text) {
  RESMGR_RETURN_IF_ERROR(Open(false));
  return WriteIn(name, text);
}

Status CpuFileDirectory::WriteIn(const std::string& name, std::string_view text) const {
  RESMGR_ASSIGN_OR_RETURN(const UniqueFd container,
                          OpenAt(directory_.get(), name, kContainerMode, false));
  const Status written = WriteFileAt(container.get(), text);
  if (written.ok()) return OkStatus();
  ::unlinkat(container.get(), kTemporary.c_str(), 0);
  return Annotate(written, fmt::format("cannot write {}/{}/{}", path_, name, kFile));
}

Status CpuFileDirectory::Remove(const std::string& name) {
  const Status opened = Open(false);
  if (opened.code() == StatusCode::kNotFound) return OkStatus();
  RESMGR_RETURN_IF_ERROR(opened);
  const StatusOr<UniqueFd> container = OpenAt(directory_.get(), name, kContainerMode, false);
  if (container.status().code() == StatusCode::kNotFound) return OkStatus();
  RESMGR_RETURN_IF_ERROR(container.status());
  for (const std::string& file : {kTemporary, kFile}) {
    if (::unlinkat(container->get(), file.c_str(), 0) != 0 && errno != ENOENT)
      return ErrnoStatus(errno, fmt::format("cannot remove {}/{}/{}", path_, name, file));
  }
  if (::unlinkat(directory_.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    return ErrnoStatus(errno, fmt::format("cannot remove {}/{}", path_, name));
  return OkStatus();
}

StatusOr<std::vector<std::string>> CpuFileDirectory::List() {
  std::vector<std::string> names;
  const Status opened = Open(false);
  if (opened.code() == StatusCode::kNotFound) return names;
  RESMGR_RETURN_IF_ERROR(opened);
  UniqueFd again(::openat(directory_.get(), ".", kOpenDirectory));
  if (!again.valid()) return ErrnoStatus(errno, fmt::format("cannot open {}", path_));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(again.get()), &::closedir);
  if (stream == nullptr) return ErrnoStatus(errno, fmt::format("cannot list {}", path_));
  static_cast<void>(again.Release());
  errno = 0;
  while (const dirent* const entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.')) continue;
    if (names.size() == kMostNames) {
      return ResourceExhausted("{} has more than {} entries", path_, kMostNames);
    }
    names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus(errno, fmt::format("cannot list {}", path_));
  return names;
}

std::string CpuFileText(const CpuSet& cpus, const CpuSet& exclusive, const NodeSet& mems) {
  return fmt::format("CPUS={}\nEXCLUSIVE_CPUS={}\nSHARED_CPUS={}\nMEMORY_NODES={}\n",
                     cpus.ToString(), exclusive.ToString(), (cpus - exclusive).ToString(),
                     mems.ToString());
}

std::string CpuFileDirectoryPrefix(std::string_view sandbox) {
  std::string prefix;
  AppendEscaped(sandbox, prefix);
  return prefix;
}

std::string CpuFileDirectorySuffix(std::string_view container, uint32_t attempt) {
  std::string suffix = "_";
  AppendEscaped(container, suffix);
  return suffix + fmt::format("_{}", attempt);
}

std::string CpuFileDirectoryName(std::string_view sandbox, std::string_view container,
                                 uint32_t attempt) {
  // Escaping makes names longer, and users may give containers any name.
  if (sandbox.size() > kLongestName || container.size() > kLongestName) return "";
  std::string name = CpuFileDirectoryPrefix(sandbox) + CpuFileDirectorySuffix(container, attempt);
  if (name.size() > kLongestName) name.clear();
  return name;
}

}  // namespace resmgr
