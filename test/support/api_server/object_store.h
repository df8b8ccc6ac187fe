// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace resmgr::test {

using Json = nlohmann::json;

// The store of an API server, in place of etcd: objects by collection ("/api/v1/nodes") and name,
// with versions and a history. Thread-safe.
class ObjectStore {
 public:
  struct Change {
    uint64_t version = 0;
    std::string type;  // ADDED, MODIFIED, DELETED
    std::string collection;
    Json object;
  };

  // Creates or replaces; returns the object with its new version.
  Json Put(const std::string& collection, const std::string& name, Json object);
  bool Delete(const std::string& collection, const std::string& name);
  std::optional<Json> Get(const std::string& collection, const std::string& name) const;
  std::vector<Json> List(const std::string& collection) const;

  // Carries out a merge patch in one step. nullopt: there is no such object. `conflict` is set
  // where the patch names a version that is not the object's; nothing changes then.
  std::optional<Json> MergePatch(const std::string& collection, const std::string& name,
                                 const Json& patch, bool& conflict);

  uint64_t version() const;
  // Forgets the history: a watch from an older version is refused.
  void Compact();
  bool IsCompacted(uint64_t version) const;

  // The changes after that version; waits for one if there is none.
  std::vector<Change> ChangesAfter(uint64_t version, std::chrono::milliseconds timeout) const;

 private:
  Json Store(const std::string& collection, const std::string& name, Json object);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t version_ = 1;
  uint64_t oldest_ = 0;
  std::map<std::string, std::map<std::string, Json>> objects_;
  std::vector<Change> history_;
};

}  // namespace resmgr::test
