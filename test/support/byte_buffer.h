// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

namespace resmgr::test {

// All bytes of a message in one string.
inline std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace resmgr::test
