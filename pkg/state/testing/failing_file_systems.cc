// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/testing/failing_file_systems.h"

#include <utility>

namespace resmgr::test {

class CrashingFileSystem::OpenFile final : public FileSystem::File {
 public:
  OpenFile(CrashingFileSystem& files, std::shared_ptr<Node> node)
      : files_(files), node_(std::move(node)) {}

  Status Append(std::string_view bytes) override {
    const std::lock_guard lock(files_.mutex_);
    Status status = files_.Operate();
    if (status.ok() && files_.fail_append) status = files_.fail_append();
    // A write that fails may have written a part.
    const size_t written = status.ok() ? bytes.size() : files_.random_() % (bytes.size() + 1);
    node_->content += bytes.substr(0, written);
    return status;
  }

  Status Sync() override {
    const std::lock_guard lock(files_.mutex_);
    RESMGR_RETURN_IF_ERROR(files_.Operate());
    node_->synced = node_->content.size();
    return OkStatus();
  }

 private:
  CrashingFileSystem& files_;
  const std::shared_ptr<Node> node_;
};

void CrashingFileSystem::Reboot() {
  left_ = -1;
  files_ = history_[random_() % history_.size()];
  for (auto& [path, node] : files_) {
    auto kept = std::make_shared<Node>(*node);
    const size_t unsynced = kept->content.size() - kept->synced;
    kept->content.resize(kept->synced + random_() % (unsynced + 1));
    kept->synced = kept->content.size();
    node = std::move(kept);
  }
  history_ = {files_};
}

StatusOr<std::string> CrashingFileSystem::Read(const std::string& path, size_t limit) {
  const std::lock_guard lock(mutex_);
  RESMGR_RETURN_IF_ERROR(Operate());
  const auto found = files_.find(path);
  if (found == files_.end()) return NotFound("no {}", path);
  if (found->second->content.size() > limit) return InvalidArgument("{} is too long", path);
  return found->second->content;
}

StatusOr<std::unique_ptr<FileSystem::File>> CrashingFileSystem::Create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  RESMGR_RETURN_IF_ERROR(Operate());
  auto node = std::make_shared<Node>();
  files_[path] = node;
  history_.push_back(files_);
  return std::make_unique<OpenFile>(*this, std::move(node));
}

Status CrashingFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  RESMGR_RETURN_IF_ERROR(Operate());
  const auto found = files_.find(from);
  if (found == files_.end()) return NotFound("no {}", from);
  files_[to] = found->second;
  files_.erase(from);
  history_.push_back(files_);
  return OkStatus();
}

Status CrashingFileSystem::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  RESMGR_RETURN_IF_ERROR(Operate());
  if (files_.erase(path) == 0) return NotFound("no {}", path);
  history_.push_back(files_);
  return OkStatus();
}

Status CrashingFileSystem::SyncDirectory(const std::string&) {
  const std::lock_guard lock(mutex_);
  RESMGR_RETURN_IF_ERROR(Operate());
  history_ = {files_};
  return OkStatus();
}

Status CrashingFileSystem::MakeDirectory(const std::string&) {
  const std::lock_guard lock(mutex_);
  return Operate();
}

Status CrashingFileSystem::Operate() {
  if (left_ == 0) return Unavailable("the machine is off");
  if (left_ > 0) --left_;
  return fail ? fail() : OkStatus();
}

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
