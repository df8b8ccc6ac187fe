// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/grpc/grpc_message.h"

namespace resmgr::test {

// A message as gRPC sends it. A compressed one is the caller's to compress.
inline std::string Framed(const std::string& payload, bool compressed = false) {
  return EncodeGrpcPrefix(compressed, payload.size()) + payload;
}

}  // namespace resmgr::test
