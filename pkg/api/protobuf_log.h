// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr {

// Sends libprotobuf's own messages (about text that is not UTF-8, about missing fields) to our log
// as source "protobuf": by default it writes to stderr, where it waits for a reader. Messages from
// outside cause them, so at most ten lines a minute are logged. For `main`, before any message is
// read.
void SendProtobufLogToOurs();

}  // namespace resmgr
