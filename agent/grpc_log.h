// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr::agent {

// Sends gRPC's messages to our log as source "grpc", at most ten lines a minute; gRPC's default
// would write to stderr and block there. Called by `main` before gRPC is used.
void SendGrpcLogToOurs();

}  // namespace resmgr::agent
