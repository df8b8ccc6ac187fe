// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::ttrpc {

// The two messages in ttrpc's frames (package ttrpc: Request, Response). Views refer to the decoded
// bytes.

struct Request {
  std::string_view service;             // "nri.pkg.api.v1alpha1.Plugin"
  std::string_view method;              // "CreateContainer"
  std::string_view payload;             // the encoded request of the method
  std::chrono::nanoseconds timeout{0};  // remaining time of the caller; 0: no limit
  // The caller's metadata, such as "traceparent": at most kMostMetadata entries, the first ones.
  std::vector<std::pair<std::string_view, std::string_view>> metadata{};
};

std::string Encode(const Request& request);
// Encodes a request up to the payload, which comes last: its `payload_size` bytes follow.
std::string EncodeUpToPayload(const Request& request, size_t payload_size);
// kInvalidArgument: not a Request.
StatusOr<Request> DecodeRequest(std::string_view bytes);

// Encodes the method's response, or an error with its gRPC code.
std::string EncodeResponse(const StatusOr<std::string>& response);
// Encodes a response up to the payload, whose `payload_size` bytes follow.
std::string EncodeResponseUpToPayload(size_t payload_size);
// The payload, or the peer's error. kInternal: not a Response.
StatusOr<std::string_view> DecodeResponse(std::string_view bytes);

}  // namespace resmgr::ttrpc
