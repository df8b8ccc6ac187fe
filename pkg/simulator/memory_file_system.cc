// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/memory_file_system.h"

#include <utility>

namespace resmgr {

// Writes go on to the same content after a rename or replacement.
class MemoryFileSystem::OpenFile : public FileSystem::File {
 public:
  OpenFile(std::mutex& mutex, std::shared_ptr<std::string> content)
      : mutex_(mutex), content_(std::move(content)) {}

  Status Append(std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    content_->append(bytes);
    return OkStatus();
  }
  Status Sync() override { return OkStatus(); }

 private:
  std::mutex& mutex_;
  const std::shared_ptr<std::string> content_;
};

StatusOr<std::string> MemoryFileSystem::Read(const std::string& path, size_t limit) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) return NotFound("no file {}", path);
  if (found->second->size() > limit) return InvalidArgument("{} is too long", path);
  return *found->second;
}

StatusOr<std::unique_ptr<FileSystem::File>> MemoryFileSystem::Create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_[path] = std::make_shared<std::string>();
  return std::make_unique<OpenFile>(mutex_, files_[path]);
}

Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  auto node = files_.extract(from);
  if (node.empty()) return NotFound("no file {}", from);
  files_.insert_or_assign(to, std::move(node.mapped()));
  return OkStatus();
}

Status MemoryFileSystem::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return files_.erase(path) > 0 ? OkStatus() : NotFound("no file {}", path);
}

Status MemoryFileSystem::SyncDirectory(const std::string& /*directory*/) {
  return OkStatus();
}

Status MemoryFileSystem::MakeDirectory(const std::string& /*directory*/) {
  return OkStatus();
}

}  // namespace resmgr
