// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/object_store.h"

#include <utility>

namespace resmgr::test {

Json ObjectStore::Store(const std::string& collection, const std::string& name, Json object) {
  auto& objects = objects_[collection];
  const bool known = objects.contains(name);
  ++version_;
  object["metadata"]["name"] = name;
  object["metadata"]["resourceVersion"] = std::to_string(version_);
  objects[name] = object;
  history_.push_back({version_, known ? "MODIFIED" : "ADDED", collection, object});
  changed_.notify_all();
  return object;
}

Json ObjectStore::Put(const std::string& collection, const std::string& name, Json object) {
  const std::lock_guard lock(mutex_);
  return Store(collection, name, std::move(object));
}

bool ObjectStore::Delete(const std::string& collection, const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto& objects = objects_[collection];
  const auto found = objects.find(name);
  if (found == objects.end()) return false;
  ++version_;
  Json object = std::move(found->second);
  object["metadata"]["resourceVersion"] = std::to_string(version_);
  objects.erase(found);
  history_.push_back({version_, "DELETED", collection, std::move(object)});
  changed_.notify_all();
  return true;
}

std::optional<Json> ObjectStore::Get(const std::string& collection, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto objects = objects_.find(collection);
  if (objects == objects_.end()) return std::nullopt;
  const auto found = objects->second.find(name);
  if (found == objects->second.end()) return std::nullopt;
  return found->second;
}

std::vector<Json> ObjectStore::List(const std::string& collection) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> list;
  if (const auto objects = objects_.find(collection); objects != objects_.end()) {
    for (const auto& [name, object] : objects->second)
      list.push_back(object);
  }
  return list;
}

std::optional<Json> ObjectStore::MergePatch(const std::string& collection, const std::string& name,
                                            const Json& patch, bool& conflict) {
  const std::lock_guard lock(mutex_);
  auto& objects = objects_[collection];
  const auto found = objects.find(name);
  if (found == objects.end()) return std::nullopt;
  const std::string wanted = patch.value("/metadata/resourceVersion"_json_pointer, "");
  conflict = !wanted.empty() && wanted != found->second["metadata"]["resourceVersion"];
  if (conflict) return found->second;
  Json object = found->second;
  object.merge_patch(patch);
  return Store(collection, name, std::move(object));
}

uint64_t ObjectStore::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

void ObjectStore::Compact() {
  const std::lock_guard lock(mutex_);
  // One more version, so that even an up-to-date client is behind.
  oldest_ = ++version_;
  history_.clear();
  changed_.notify_all();
}

bool ObjectStore::IsCompacted(uint64_t version) const {
  const std::lock_guard lock(mutex_);
  return version < oldest_;
}

std::vector<ObjectStore::Change> ObjectStore::ChangesAfter(
    uint64_t version, std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return version_ > version; });
  std::vector<Change> changes;
  for (const Change& change : history_) {
    if (change.version > version) changes.push_back(change);
  }
  return changes;
}

}  // namespace resmgr::test
