// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/file_system.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

class RealFile final : public FileSystem::File {
 public:
  RealFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Append(std::string_view bytes) override {
    if (WriteFully(fd_.get(), bytes) == bytes.size()) return OkStatus();
    return ErrnoStatus(errno, fmt::format("cannot write {}", path_));
  }

  Status Sync() override {
    if (::fdatasync(fd_.get()) == 0) return OkStatus();
    return ErrnoStatus(errno, fmt::format("cannot sync {}", path_));
  }

 private:
  const std::string path_;
  const UniqueFd fd_;
};

class KernelFileSystem final : public FileSystem {
 public:
  StatusOr<std::string> Read(const std::string& path, size_t limit) override {
    return ReadFile(path, limit);
  }

  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override {
    // Removes what is at that path, since a symbolic link there must not be followed.
    ::unlink(path.c_str());
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus(errno, fmt::format("cannot create {}", path));
    return std::make_unique<RealFile>(path, std::move(fd));
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
    return ErrnoStatus(errno, fmt::format("cannot rename {} to {}", from, to));
  }

  Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return OkStatus();
    return ErrnoStatus(errno, fmt::format("cannot remove {}", path));
  }

  Status SyncDirectory(const std::string& directory) override {
    const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.valid() && ::fsync(fd.get()) == 0) return OkStatus();
    return ErrnoStatus(errno, fmt::format("cannot sync directory {}", directory));
  }

  Status MakeDirectory(const std::string& directory) override {
    if (::mkdir(directory.c_str(), 0700) == 0) return OkStatus();
    int why = errno;
    if (why == ENOENT) {
      std::error_code failed;
      std::filesystem::create_directories(directory, failed);
      if (!failed && ::chmod(directory.c_str(), 0700) == 0) return OkStatus();
      why = failed ? failed.value() : errno;
    }
    std::error_code ignored;
    if (std::filesystem::is_directory(directory, ignored)) return OkStatus();
    return ErrnoStatus(why == EEXIST ? ENOTDIR : why,
                       fmt::format("cannot make directory {}", directory));
  }
};

}  // namespace

FileSystem& RealFileSystem() {
  static auto* const kFileSystem = new KernelFileSystem;
  return *kFileSystem;
}

Status ClaimedFileSystem::Claim() {
  if (claim_.valid()) return OkStatus();
  Status claimed = TryToClaim();
  if (!claimed.ok() && on_refusal_) std::exchange(on_refusal_, nullptr)(claimed);
  return claimed;
}

Status ClaimedFileSystem::TryToClaim() {
  RESMGR_RETURN_IF_ERROR(files_.MakeDirectory(directory_));
  RESMGR_ASSIGN_OR_RETURN(claim_, ClaimDirectory(directory_));
  return OkStatus();
}

Status ClaimedFileSystem::ClaimFor(const std::string& path) {
  return path.starts_with(directory_ + "/") ? Claim() : OkStatus();
}

StatusOr<std::string> ClaimedFileSystem::Read(const std::string& path, size_t limit) {
  (void)ClaimFor(path);  // even without the claim, the files of another process can be read
  return files_.Read(path, limit);
}

StatusOr<std::unique_ptr<FileSystem::File>> ClaimedFileSystem::Create(const std::string& path) {
  RESMGR_RETURN_IF_ERROR(ClaimFor(path));
  return files_.Create(path);
}

Status ClaimedFileSystem::Rename(const std::string& from, const std::string& to) {
  RESMGR_RETURN_IF_ERROR(ClaimFor(to));
  return files_.Rename(from, to);
}

Status ClaimedFileSystem::Remove(const std::string& path) {
  RESMGR_RETURN_IF_ERROR(ClaimFor(path));
  return files_.Remove(path);
}

Status ClaimedFileSystem::SyncDirectory(const std::string& directory) {
  return files_.SyncDirectory(directory);
}

Status ClaimedFileSystem::MakeDirectory(const std::string& directory) {
  return files_.MakeDirectory(directory);
}

}  // namespace resmgr
