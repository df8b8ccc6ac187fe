// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/memory_host.h"

#include <algorithm>
#include <utility>

namespace resmgr {

void MemoryRuntime::Answer(std::function<void()> answer) {
  ++answers_;
  loop_.Post([this, answer = std::move(answer)] {
    --answers_;
    answer();
  });
}

void MemoryRuntime::UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                                    std::function<void(Status)> done) {
  const bool known = Find(id) != nullptr;
  Apply(id, adjustment);
  Answer([done = std::move(done),
          status = known ? OkStatus() : NotFound("no container {}", id.value())] { done(status); });
}

void MemoryRuntime::ListAll(Known /*known*/, std::function<void(StatusOr<RuntimeInventory>)> done) {
  RuntimeInventory inventory;
  for (const auto& [number, pod] : pods_)
    inventory.pods.push_back(pod);
  for (const auto& [number, container] : containers_)
    inventory.containers.push_back(container);
  Answer([done = std::move(done), inventory = std::move(inventory)] { done(inventory); });
}

const Pod* MemoryRuntime::FindPod(const PodSandboxId& id) const {
  const auto found = pod_numbers_.find(id);
  return found == pod_numbers_.end() ? nullptr : &pods_.at(found->second);
}

const RuntimeContainer* MemoryRuntime::Find(const ContainerId& id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? nullptr : &containers_.at(found->second);
}

RuntimeContainer* MemoryRuntime::Change(const ContainerId& id) {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return nullptr;
  Touch(id);
  return &containers_.at(found->second);
}

std::vector<ContainerId> MemoryRuntime::ContainersOf(const PodSandboxId& id) const {
  std::vector<ContainerId> ids;
  const auto found = of_pods_.find(id);
  if (found == of_pods_.end()) return ids;
  for (const uint64_t number : found->second)
    ids.push_back(containers_.at(number).id);
  return ids;
}

void MemoryRuntime::AddPod(Pod pod) {
  RemovePod(pod.id);
  pod_numbers_[pod.id] = ++last_number_;
  pods_.emplace(last_number_, std::move(pod));
}

void MemoryRuntime::RemovePod(const PodSandboxId& id) {
  for (const ContainerId& container : ContainersOf(id))
    Remove(container);
  const auto found = pod_numbers_.find(id);
  if (found == pod_numbers_.end()) return;
  pods_.erase(found->second);
  pod_numbers_.erase(found);
}

void MemoryRuntime::Add(RuntimeContainer container) {
  Remove(container.id);
  Touch(container.id);
  numbers_[container.id] = ++last_number_;
  of_pods_[container.pod_id].insert(last_number_);
  containers_.emplace(last_number_, std::move(container));
}

void MemoryRuntime::Remove(const ContainerId& id) {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return;
  Touch(id);
  const auto container = containers_.find(found->second);
  const auto of_pod = of_pods_.find(container->second.pod_id);
  of_pod->second.erase(found->second);
  if (of_pod->second.empty()) of_pods_.erase(of_pod);
  containers_.erase(container);
  numbers_.erase(found);
}

void MemoryRuntime::SetRunning(const ContainerId& id, std::chrono::system_clock::time_point now) {
  RuntimeContainer* const container = Change(id);
  if (container == nullptr) return;
  container->state = ContainerState::kRunning;
  container->started_at = now;
}

void MemoryRuntime::SetExited(const ContainerId& id) {
  RuntimeContainer* const container = Change(id);
  if (container != nullptr) container->state = ContainerState::kExited;
}

void MemoryRuntime::Apply(const ContainerId& id, const LinuxResources& resources) {
  RuntimeContainer* const container = Change(id);
  if (container != nullptr) container->resources = Merged(container->resources, resources);
}

void MemoryRuntime::Apply(const ContainerId& id, const ResourceValues& adjustment) {
  Apply(id, AsResources(adjustment));
}

std::vector<ContainerId> MemoryRuntime::TakeTouched() {
  std::vector<std::pair<uint64_t, ContainerId>> numbered;  // number 0: it was removed
  for (const ContainerId& id : std::exchange(touched_, {})) {
    const auto found = numbers_.find(id);
    numbered.emplace_back(found == numbers_.end() ? 0 : found->second, id);
  }
  std::ranges::sort(numbered);
  std::vector<ContainerId> ids;
  ids.reserve(numbered.size());
  for (auto& [number, id] : numbered)
    ids.push_back(std::move(id));
  return ids;
}

// An open file. Writes go to the same content even after the file was renamed or replaced.
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
