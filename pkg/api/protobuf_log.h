// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr {

// Sends what libprotobuf has to say (of text that is no UTF-8, of messages that lack fields) to our
// log as source "protobuf": by itself it writes to stderr, where it waits for a reader. Messages
// that others send make it say something, so a minute has ten lines of it at most. For `main`,
// before any message is read.
void SendProtobufLogToOurs();

}  // namespace resmgr
