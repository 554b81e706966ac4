#include "shared/network/zmq_library.h"

#include <dlfcn.h>

#include <mutex>
#include <string>

namespace atolldb {
namespace {

constexpr const char* kZmqFile = "libzmq.so.5";

std::unexpected<Error> zmq_unusable(const std::string& why) {
  return make_error(ExitCode::config, std::string("sessions over the network need ZeroMQ 4.3: ") +
                                          kZmqFile + ": " + why + ": install the package libzmq5");
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, ZmqLibrary& zmq) {
  return find(library, "zmq_ctx_new", zmq.ctx_new) && find(library, "zmq_ctx_set", zmq.ctx_set) &&
         find(library, "zmq_ctx_term", zmq.ctx_term) && find(library, "zmq_socket", zmq.socket) &&
         find(library, "zmq_close", zmq.close) && find(library, "zmq_setsockopt", zmq.setsockopt) &&
         find(library, "zmq_connect", zmq.connect) && find(library, "zmq_send", zmq.send) &&
         find(library, "zmq_poll", zmq.poll) && find(library, "zmq_msg_init", zmq.msg_init) &&
         find(library, "zmq_msg_init_data", zmq.msg_init_data) &&
         find(library, "zmq_msg_send", zmq.msg_send) &&
         find(library, "zmq_msg_recv", zmq.msg_recv) &&
         find(library, "zmq_msg_close", zmq.msg_close) &&
         find(library, "zmq_msg_data", zmq.msg_data) &&
         find(library, "zmq_msg_size", zmq.msg_size) &&
         find(library, "zmq_msg_more", zmq.msg_more) &&
         find(library, "zmq_socket_monitor", zmq.socket_monitor) &&
         find(library, "zmq_errno", zmq.last_error) &&
         find(library, "zmq_strerror", zmq.strerror) && find(library, "zmq_has", zmq.has);
}

}  // namespace

Result<const ZmqLibrary*> ZmqLibrary::load() {
  static std::mutex mutex;
  static ZmqLibrary functions;
  static bool is_loaded = false;
  const std::lock_guard guard(mutex);
  if (is_loaded) return &functions;
  // The library stays loaded: its threads may still run when the last client has been destroyed.
  void* const library = dlopen(kZmqFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const why = dlerror();
    return zmq_unusable(why == nullptr ? "cannot be loaded" : why);
  }
  if (!find_all(library, functions)) return zmq_unusable("lacks a function");
  if (functions.has("curve") == 0) return zmq_unusable("was built without CURVE");
  is_loaded = true;
  return &functions;
}

}  // namespace atolldb
