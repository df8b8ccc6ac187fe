// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/http.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// Reads ResourceClaims on behalf of the daemon, each try once: the kubelet asks the daemon again.
// Thread-compatible; no callback comes after the end of this object.
class ClaimReader {
 public:
  // Gets the object as JSON. kInvalidArgument for what is no name; kResourceExhausted if too many
  // are being read; kNotFound: the server has no such claim; kFailedPrecondition: it has no such
  // API; else as of StatusOfReply.
  using Done = std::function<void(StatusOr<std::string> claim)>;

  static constexpr size_t kMostAtOnce = 64;

  explicit ClaimReader(HttpTransport& transport) : transport_(transport) {}

  void Get(const std::string& namespace_name, const std::string& name, Done done);

 private:
  HttpTransport& transport_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::unique_ptr<HttpTransport::Call>> calls_;
};

}  // namespace resmgr::agent
