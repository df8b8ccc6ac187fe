// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/testing/hanging_file_system.h"

#include <utility>

namespace resmgr::test {

class HangingFileSystem::OpenFile final : public FileSystem::File {
 public:
  OpenFile(HangingFileSystem& files, std::unique_ptr<File> file)
      : files_(files), file_(std::move(file)) {
    const std::lock_guard lock(files_.mutex_);
    ++files_.open_;
  }
  ~OpenFile() override {
    const std::lock_guard lock(files_.mutex_);
    --files_.open_;
    files_.changed_.notify_all();
  }

  Status Append(std::string_view bytes) override { return file_->Append(bytes); }
  Status Sync() override {
    files_.Pass(files_.hangs_);
    return file_->Sync();
  }

 private:
  HangingFileSystem& files_;
  const std::unique_ptr<File> file_;
};

void HangingFileSystem::Hang() {
  const std::lock_guard lock(mutex_);
  hangs_ = true;
}

void HangingFileSystem::HangReading() {
  const std::lock_guard lock(mutex_);
  reading_hangs_ = true;
}

void HangingFileSystem::HangRenameTo(std::string name) {
  const std::lock_guard lock(mutex_);
  rename_hangs_ = true;
  hanging_name_ = std::move(name);
}

void HangingFileSystem::ComeBack() {
  const std::lock_guard lock(mutex_);
  rename_hangs_ = false;
  hangs_ = false;
  reading_hangs_ = false;
  changed_.notify_all();
}

void HangingFileSystem::WaitHanging() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return hanging_ > 0; });
}

void HangingFileSystem::WaitClosed() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return open_ == 0; });
}

StatusOr<std::string> HangingFileSystem::Read(const std::string& path, size_t limit) {
  if (!path.ends_with("/calls")) Pass(reading_hangs_);
  return files_.Read(path, limit);
}

StatusOr<std::unique_ptr<FileSystem::File>> HangingFileSystem::Create(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(path));
  return std::make_unique<OpenFile>(*this, std::move(file));
}

Status HangingFileSystem::SyncDirectory(const std::string& directory) {
  Pass(hangs_);
  return files_.SyncDirectory(directory);
}

Status HangingFileSystem::Rename(const std::string& from, const std::string& to) {
  {
    std::unique_lock lock(mutex_);
    if (rename_hangs_ && to.ends_with("/" + hanging_name_)) Pass(lock, rename_hangs_);
  }
  return files_.Rename(from, to);
}

void HangingFileSystem::Pass(const bool& hangs) {
  std::unique_lock lock(mutex_);
  Pass(lock, hangs);
}

void HangingFileSystem::Pass(std::unique_lock<std::mutex>& lock, const bool& hangs) {
  ++hanging_;
  changed_.notify_all();
  changed_.wait(lock, [&hangs] { return !hangs; });
  --hanging_;
}

}  // namespace resmgr::test
