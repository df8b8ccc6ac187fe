// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr::agent {

// Sends what gRPC has to say to our log as source "grpc": by itself it writes to stderr, where it
// waits for a reader. A minute has ten lines of it at most. For `main`, before gRPC is used.
void SendGrpcLogToOurs();

}  // namespace resmgr::agent
