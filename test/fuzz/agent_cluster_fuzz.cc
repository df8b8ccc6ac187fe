// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cluster_access.h"
#include "agent/credentials.h"
#include "agent/object_watch.h"
#include "pkg/base/json.h"

namespace {

using resmgr::agent::WatchDecoder;
using resmgr::agent::WatchEvent;

// The decoder's events when the bytes come in pieces of this size.
std::vector<std::string> Decode(std::string_view bytes, size_t piece) {
  constexpr size_t kLimit = 200;
  WatchDecoder decoder(kLimit);
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const resmgr::Status status =
        decoder.Feed(bytes.substr(at, piece), [&events](const WatchEvent& event) {
          events.push_back(resmgr::JsonText(event.object));
          return true;
        });
    if (!status.ok()) break;
  }
  return events;
}

}  // namespace

// Reads bytes of an API server and of a kubeconfig: events do not depend on how the stream was cut,
// and errors are of the kind that is promised.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto whole = Decode(bytes, bytes.size() + 1);
  for (const size_t piece : {size_t{1}, size_t{7}}) {
    if (Decode(bytes, piece) != whole) std::abort();
  }
  const auto access = resmgr::agent::ParseKubeconfig(bytes, "fuzz", "/");
  if (!access.ok() && access.status().code() != resmgr::StatusCode::kInvalidArgument &&
      access.status().code() != resmgr::StatusCode::kUnimplemented) {
    std::abort();
  }
  if (access.ok() && access->server.empty()) std::abort();
  const auto credential = resmgr::agent::ParsePluginCredential(bytes);
  if (credential.ok() && credential->credential.token.empty() &&
      credential->credential.certificate.empty()) {
    std::abort();
  }
  return 0;
}
