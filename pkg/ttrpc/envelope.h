// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::ttrpc {

// The two messages that ttrpc's frames carry (package ttrpc: Request, Response). Views are into the
// bytes that they were decoded from.

struct Request {
  std::string_view service;             // "nri.pkg.api.v1alpha1.Plugin"
  std::string_view method;              // "CreateContainer"
  std::string_view payload;             // the encoded request of the method
  std::chrono::nanoseconds timeout{0};  // what the caller still waits; 0: for ever
  // The first kMostMetadata, such as "traceparent".
  std::vector<std::pair<std::string_view, std::string_view>> metadata{};
};

std::string Encode(const Request& request);
// The same with the payload last, of which the bytes, so many, are still to follow.
std::string EncodeUpToPayload(const Request& request, size_t payload_size);
// InvalidArgument: it is no Request.
StatusOr<Request> DecodeRequest(std::string_view bytes);

// OK with the encoded response of the method, or what went wrong, with a code of gRPC.
std::string EncodeResponse(const StatusOr<std::string>& response);
// One that is OK, up to the payload, of which the bytes, so many, are still to follow.
std::string EncodeResponseUpToPayload(size_t payload_size);
// The payload, or the status that the peer answered. Internal: it is no Response.
StatusOr<std::string_view> DecodeResponse(std::string_view bytes);

}  // namespace resmgr::ttrpc
