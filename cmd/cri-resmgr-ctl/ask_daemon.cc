// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/ask_daemon.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "pkg/grpc/unary_client.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

// Time limit for finding out whether a daemon runs.
constexpr std::chrono::milliseconds kProbeTimeout{5'000};

UnaryAnswer Ask(const std::string& socket, std::string_view method, std::string_view request,
                std::chrono::milliseconds timeout) {
  return AskUnary(socket, fmt::format("/cri_resmgr.v1.Admin/{}", method), request, timeout);
}

// Whether another program than the daemon may have answered: a gRPC server without this service, a
// proxy whose backend is away, or a server that does not speak HTTP/2, which breaks the connection.
bool MayBeOfAnother(StatusCode code) {
  return code == StatusCode::kUnimplemented || code == StatusCode::kUnavailable ||
         code == StatusCode::kUnknown || code == StatusCode::kInternal;
}

std::string_view NextStep(const std::string& socket) {
  if (::access(socket.c_str(), R_OK | W_OK) != 0 && errno == EACCES) {
    return "only root may use it: try again with sudo";
  }
  return "see whether it runs: systemctl status 'cri-resmgr*', journalctl -u 'cri-resmgr*'";
}

}  // namespace

StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request, std::chrono::milliseconds patience) {
  RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(socket), "-socket"));
  UnaryAnswer answer = Ask(socket, method, request, patience);
  if (!answer.connected.ok()) {
    return Unavailable("cri-resmgr is not reached: {}; {}", Message(answer.connected),
                       NextStep(socket));
  }
  if (answer.reply.ok() || !MayBeOfAnother(answer.reply.status().code())) return answer.reply;
  const UnaryAnswer probe = Ask(socket, "Status", "{}", std::min(patience, kProbeTimeout));
  if (probe.connected.ok() && !probe.reply.ok()) {
    return Unavailable("{} is not a cri-resmgr admin socket, or the daemon has just ended", socket);
  }
  if (answer.reply.status().code() == StatusCode::kUnimplemented) {
    return Unimplemented("the daemon at {} is of another version: it cannot do this", socket);
  }
  return answer.reply;
}

}  // namespace resmgr
