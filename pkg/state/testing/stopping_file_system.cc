// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/testing/stopping_file_system.h"

#include <utility>

namespace resmgr::test {

class StoppingFileSystem::OpenFile final : public FileSystem::File {
 public:
  // Without a file all writes are lost.
  OpenFile(StoppingFileSystem& files, std::unique_ptr<File> file)
      : files_(files), file_(std::move(file)) {}

  Status Append(std::string_view bytes) override {
    const Fate fate = files_.NextChange();
    if (fate == Fate::kLost || file_ == nullptr) return OkStatus();
    return file_->Append(fate == Fate::kCut ? bytes.substr(0, bytes.size() / 2) : bytes);
  }
  Status Sync() override {
    if (files_.NextChange() != Fate::kMade || file_ == nullptr) return OkStatus();
    return file_->Sync();
  }

 private:
  StoppingFileSystem& files_;
  const std::unique_ptr<File> file_;
};

void StoppingFileSystem::StopAfter(int changes) {
  left_ = changes;
  stopping_ = true;
}

StoppingFileSystem::Fate StoppingFileSystem::NextChange() {
  if (!stopping_) return Fate::kMade;
  if (left_ < 0) return Fate::kLost;
  return left_-- > 0 ? Fate::kMade : Fate::kCut;
}

StatusOr<std::unique_ptr<FileSystem::File>> StoppingFileSystem::Create(const std::string& path) {
  if (NeverBehind(path)) return files_.Create(path);
  if (NextChange() != Fate::kMade) return std::make_unique<OpenFile>(*this, nullptr);
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(path));
  return std::make_unique<OpenFile>(*this, std::move(file));
}

Status StoppingFileSystem::Rename(const std::string& from, const std::string& to) {
  if (NeverBehind(from)) return files_.Rename(from, to);
  return NextChange() == Fate::kMade ? files_.Rename(from, to) : OkStatus();
}

Status StoppingFileSystem::Remove(const std::string& path) {
  return NextChange() == Fate::kMade ? files_.Remove(path) : OkStatus();
}

Status StoppingFileSystem::SyncDirectory(const std::string& directory) {
  return NextChange() == Fate::kMade ? files_.SyncDirectory(directory) : OkStatus();
}

Status StoppingFileSystem::MakeDirectory(const std::string& directory) {
  return NextChange() == Fate::kMade ? files_.MakeDirectory(directory) : OkStatus();
}

}  // namespace resmgr::test
