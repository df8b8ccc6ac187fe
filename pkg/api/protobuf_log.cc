// SPDX-License-Identifier: Apache-2.0
#include "pkg/api/protobuf_log.h"

#include <string>

#include <google/protobuf/stubs/logging.h>

#include "pkg/log/library_log.h"

namespace resmgr {
namespace {

// Called on any thread that reads messages.
void Handle(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/,
            const std::string& message) {
  static LibraryLog& log = *new LibraryLog("protobuf");
  log.Say(level == google::protobuf::LOGLEVEL_FATAL ? LogLevel::kError : LogLevel::kWarn, message);
}

}  // namespace

void SendProtobufLogToOurs() {
  google::protobuf::SetLogHandler(Handle);
}

}  // namespace resmgr
