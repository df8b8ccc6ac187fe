// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::agent {

inline constexpr int kUnauthorized = 401;
inline constexpr std::string_view kJsonType = "application/json";

struct HttpRequest {
  std::string method = "GET";
  std::string target{};  // path and query
  std::string content_type{};
  std::string accept{kJsonType};  // the type of the reply's body
  std::string body{};
  // Time limit until the reply begins.
  std::chrono::milliseconds first_byte_timeout{30'000};
  // Time limit until the reply has ended.
  std::chrono::milliseconds timeout{30'000};
};

struct HttpReply {
  int status = 0;
  std::string body{};  // empty where the pieces went to `data`
  // The wait that the server asked for (Retry-After).
  std::optional<std::chrono::seconds> retry_after{};
};

// The transport to one API server: address, TLS and credentials belong to the implementation. Used
// on one thread, which also gets the callbacks, never from within Send.
class HttpTransport {
 public:
  // A request under way. Destroying it gives the request up and prevents further callbacks; its own
  // callbacks may destroy it.
  class Call {
   public:
    virtual ~Call() = default;
  };

  // Gets the body of a reply with status 200, in pieces.
  using Data = std::function<void(std::string_view piece)>;
  // Called once, at the end. An error: the server was not reached or the reply broke off.
  // kUnavailable, kDeadlineExceeded, kResourceExhausted for a body of more than kMaxBody,
  // kFailedPrecondition without credentials.
  using Done = std::function<void(StatusOr<HttpReply> reply)>;

  static constexpr size_t kMaxBody = 16 << 20;

  virtual ~HttpTransport() = default;

  // Without `data` the body is collected.
  virtual std::unique_ptr<Call> Send(HttpRequest request, Data data, Done done) = 0;
};

// A value of HttpRequest::accept that asks for objects' metadata alone; an older server sends whole
// objects. `kind` is PartialObjectMetadata, or PartialObjectMetadataList for a list.
std::string MetadataOnly(std::string_view kind);

// OK for 2xx, else an error with the server's own words (the message of a Kubernetes Status):
// kNotFound 404, kPermissionDenied 401 and 403, kAborted 409, kOutOfRange 410, kInvalidArgument
// other 4xx, kUnavailable all else.
Status StatusOfReply(const HttpReply& reply);

// Whether the server would refuse the same request again: 400, 403 (which is also the code of an
// admission policy), 413 and 422.
bool RefusesContent(const HttpReply& reply);

// The wait before the next try that the server asked for, at most a minute, so that no server can
// silence the agent.
std::chrono::seconds WaitAskedFor(const HttpReply& reply);

}  // namespace resmgr::agent
