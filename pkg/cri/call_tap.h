// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/cri/method_table.h"
#include "pkg/dump/dumper.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/header_block.h"

namespace resmgr {

// Copies one call's messages, as they pass, to the dumper. Never delays the call.
class CallTap {
 public:
  // Null if the dumper excludes this method. `id` must be unique.
  static std::unique_ptr<CallTap> Create(dump::Dumper& dumper, uint64_t id, const Method& method,
                                         bool intercepted);
  // For Dumper::Options::decompress, since decompression is too slow for the loop.
  static StatusOr<std::string> Decompress(const dump::Payload& payload);
  ~CallTap();
  CallTap(const CallTap&) = delete;
  CallTap& operator=(const CallTap&) = delete;

  void OnRequestHeaders(const h2::HeaderBlock& headers);
  void OnRequestData(std::string_view data);
  // The runtime gets the request's only message, `before`, with `suffix` appended.
  void OnRequestChanged(std::string_view before, std::string_view suffix);
  // The same with a different message.
  void OnRequestReplaced(std::string_view before, std::string after);
  void OnReplyHeaders(const h2::HeaderBlock& headers);
  void OnReplyData(std::string_view data);
  void OnEnd(const GrpcStatus& status);

 private:
  CallTap(dump::Dumper& dumper, uint64_t id, const Method& method, bool intercepted, bool messages);
  // The messages of one direction so far.
  struct Collection {
    Collection(size_t limit, GrpcMessageReader::Sink sink) : reader(limit, std::move(sink)) {}
    GrpcMessageReader reader;
    size_t reserved = 0;  // bytes of the dumper's room
  };

  void Collect(Collection& collection, std::string_view data);
  void Release(Collection& collection);
  void GiveUp();
  static dump::Payload ToPayload(GrpcMessage message, const std::string& encoding);

  dump::Dumper& dumper_;
  const std::string path_;
  dump::CallRef ref_;
  std::string request_encoding_;
  std::string reply_encoding_;
  bool request_reported_ = false;
  // Empty if the dumper has no room for the rest of the call.
  std::optional<Collection> requests_;
  std::optional<Collection> replies_;
};

}  // namespace resmgr
