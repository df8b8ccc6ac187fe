// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/testing/crashing_file_system.h"

#include <utility>

namespace resmgr::test {

class CrashingFileSystem::OpenFile final : public FileSystem::File {
 public:
  OpenFile(CrashingFileSystem& files, std::shared_ptr<Node> node)
      : files_(files), node_(std::move(node)) {}

  Status Append(std::string_view bytes) override {
    const std::lock_guard lock(files_.mutex_);
    const Status status = files_.Operate();
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

}  // namespace resmgr::test
