// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "agent/cluster_access.h"
#include "agent/http.h"
#include "pkg/base/json.h"
#include "pkg/base/status.h"

namespace resmgr::test {

using agent::Json;

// Talks to an API server as one user, and waits for each answer. Thread-compatible.
class KubeClient {
 public:
  explicit KubeClient(agent::ClusterAccess access) : access_(std::move(access)) {}

  // The codes are those of agent::StatusOfReply.
  StatusOr<Json> Get(std::string_view path) const { return Call("GET", path, "", ""); }
  // Creates the object, which may be YAML or JSON, in a collection.
  StatusOr<Json> Create(std::string_view collection, std::string_view object) const {
    return Call("POST", collection, "application/yaml", object);
  }
  StatusOr<Json> MergePatch(std::string_view path, const Json& patch) const {
    return Call("PATCH", path, "application/merge-patch+json", JsonText(patch));
  }
  Status Delete(std::string_view path) const { return Call("DELETE", path, "", "").status(); }

 private:
  StatusOr<Json> Call(std::string_view method, std::string_view path, std::string_view type,
                      std::string_view body) const;

  const agent::ClusterAccess access_;
};

}  // namespace resmgr::test
