// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <google/protobuf/map.h>
#include <grpcpp/support/status.h>

#include "test/support/fake_runtime/cri_store.h"

// Helpers that the parts of CriStore share.
namespace resmgr::test {

// Nanoseconds since the epoch, as CRI counts.
inline int64_t WallClockNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

inline grpc::Status NoSuch(std::string_view kind, const std::string& id) {
  return {grpc::StatusCode::NOT_FOUND,
          "an error occurred when try to find " + std::string(kind) + " \"" + id + "\": not found"};
}

// Errors that containerd gives no code to.
inline grpc::Status Unknown(const std::string& message) {
  return {grpc::StatusCode::UNKNOWN, message};
}

// Finds by the whole id, or by a unique beginning; returns the end if there is none.
template <typename Map>
auto FindById(Map& by_id, const std::string& id) {
  const auto whole = by_id.find(id);
  if (whole != by_id.end() || id.empty()) return whole;
  const auto begins = [&](auto it) { return it != by_id.end() && it->first.starts_with(id); };
  const auto first = by_id.lower_bound(id);
  return begins(first) && !begins(std::next(first)) ? first : by_id.end();
}

using Labels = google::protobuf::Map<std::string, std::string>;

// Whether `labels` holds all of `selector`.
inline bool MatchesSelector(const Labels& labels, const Labels& selector) {
  for (const auto& [key, value] : selector) {
    const auto found = labels.find(key);
    if (found == labels.end() || found->second != value) return false;
  }
  return true;
}

}  // namespace resmgr::test
