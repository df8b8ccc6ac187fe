// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_log.h"

#include <grpc/support/log.h>

#include "pkg/log/library_log.h"

namespace resmgr::agent {
namespace {

// Called on any of gRPC's threads.
void Handle(gpr_log_func_args* args) {
  static LibraryLog& log = *new LibraryLog("grpc");
  log.Say(args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarn : LogLevel::kDebug,
          args->message);
}

}  // namespace

void SendGrpcLogToOurs() {
  gpr_set_log_function(Handle);
}

}  // namespace resmgr::agent
