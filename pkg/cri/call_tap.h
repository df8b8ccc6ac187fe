// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/cri/grpc_message.h"
#include "pkg/cri/method_table.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/header_block.h"

namespace resmgr {

// Copies one call's messages, as they pass, to the dumper. Never holds anything up.
class CallTap {
 public:
  // Null when the dumper does not want this method. `id` is never used twice.
  static std::unique_ptr<CallTap> Create(dump::Dumper& dumper, uint64_t id, const Method& method,
                                         bool intercepted);
  CallTap(const CallTap&) = delete;
  CallTap& operator=(const CallTap&) = delete;

  void OnRequestHeaders(const h2::HeaderBlock& headers);
  void OnRequestData(std::string_view data);
  void OnReplyHeaders(const h2::HeaderBlock& headers);
  void OnReplyData(std::string_view data);
  void OnEnd(const GrpcStatus& status);

 private:
  CallTap(dump::Dumper& dumper, uint64_t id, const Method& method, bool intercepted, bool messages);
  dump::Payload ToPayload(GrpcMessage message, const std::string& encoding) const;

  dump::Dumper& dumper_;
  const std::string path_;
  dump::CallRef ref_;
  const bool messages_;  // wants them, not just the call
  std::string request_encoding_;
  std::string reply_encoding_;
  GrpcMessageReader requests_;
  GrpcMessageReader replies_;
};

}  // namespace resmgr
