/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl in C++11 and later: objects that release themselves, and errors as exceptions. Header
 * only; the functions behind it, their errors and thread rules are those of tconv_cl.h.
 *
 *     tconv::session session;                                   // the default device
 *     tconv::session_layer layer(session);                      // its filter is constant
 *     tconv_problem problem = TCONV_PROBLEM_INIT;               // and so on
 *     layer.run(problem, arrays);
 *
 * Objects can be moved but not copied. An object that was moved from, or made without arguments, is
 * empty and false; but with exceptions `session session;` opens the default device, and
 * `session session(nullptr);` is empty. `get()` is the handle for functions of the C interface.
 *
 * Each call has two forms: one throws tconv::error, one takes a tconv_error & at its end, returns
 * the status and never throws. With TCONV_CL_NO_EXCEPTIONS defined there is only the second one:
 * objects are empty until `create`. All files of a program define it, or none. */
#ifndef TCONV_CL_TCONV_CL_HPP
#define TCONV_CL_TCONV_CL_HPP

#include "tconv_cl.h"

#include <cstddef>
#include <type_traits>
#ifndef TCONV_CL_NO_EXCEPTIONS
#if !defined(__cpp_exceptions) && !defined(__EXCEPTIONS) && !defined(_CPPUNWIND)
#error "exceptions are off: define TCONV_CL_NO_EXCEPTIONS before tconv_cl.hpp is included"
#endif
#include <stdexcept>
#endif

/* The C++ interface: each class owns one handle of the C interface. */
namespace tconv
{

#ifndef TCONV_CL_NO_EXCEPTIONS
/* The error of a function of the C interface. */
class error : public std::runtime_error
{
  public:
    /* From the explanation that the function filled. */
    explicit error(const tconv_error &e)
        : std::runtime_error(e.message), status_(e.status), opencl_(e.opencl_code)
    {
    }
    /* The function's status. */
    tconv_status status() const noexcept
    {
        return status_;
    }
    /* The raw code; 0: none. */
    int opencl_code() const noexcept
    {
        return opencl_;
    }

  private:
    tconv_status status_;
    int opencl_;
};

/* Throws if `status` is not TCONV_OK. */
inline void check(tconv_status status, const tconv_error &e)
{
    if (status != TCONV_OK) throw error(e);
}
#endif

/* Owns one handle. */
template <typename Handle, void (*Release)(Handle *)> class owner
{
  public:
    owner() noexcept : handle_(nullptr)
    {
    }
    /* Takes over one reference. */
    explicit owner(Handle *handle) noexcept : handle_(handle)
    {
    }
    /* `other` is empty after it. */
    owner(owner &&other) noexcept : handle_(other.release())
    {
    }
    /* Releases the handle and takes the other's. */
    owner &operator=(owner &&other) noexcept
    {
        if (this != &other) reset(other.release());
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner()
    {
        Release(handle_);
    }

    /* The handle, which stays owned; NULL: empty. */
    Handle *get() const noexcept
    {
        return handle_;
    }
    /* True if there is a handle. */
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

    /* Gives the handle to the caller. */
    Handle *release() noexcept
    {
        Handle *handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    /* Releases the handle and takes over another one. */
    void reset(Handle *handle = nullptr) noexcept
    {
        Release(handle_);
        handle_ = handle;
    }

  protected:
    /* Takes the handle that `status` says was made. */
    tconv_status take(tconv_status status, Handle *handle) noexcept
    {
        if (status == TCONV_OK) reset(handle);
        return status;
    }

  private:
    Handle *handle_;
};

/* session.h: a device with a context and a queue of its own, for host arrays. */
class session : public owner<tconv_session, tconv_session_release>
{
  public:
    /* An empty object, for `create`, from nullptr. (A template, because other constants of value 0
     * are a device's number.) */
    template <class Nothing,
              class = typename std::enable_if<std::is_same<Nothing, std::nullptr_t>::value>::type>
    explicit session(Nothing) noexcept
    {
    }
#ifdef TCONV_CL_NO_EXCEPTIONS
    session() = default;
#endif
    /* tconv_session_create. */
    tconv_status create(int number, tconv_error &e) noexcept
    {
        tconv_session *made = nullptr;
        const tconv_status status = tconv_session_create(number, &made, &e);
        return take(status, made);
    }
    /* tconv_session_run. */
    tconv_status run(const tconv_problem &problem, const tconv_arrays &arrays,
                     const tconv_plan_options *options, tconv_error &e) noexcept
    {
        return tconv_session_run(get(), &problem, options, &arrays, &e);
    }
    /* tconv_session_context. */
    cl_context context() const noexcept
    {
        return tconv_session_context(get());
    }
    /* tconv_session_queue. */
    cl_command_queue queue() const noexcept
    {
        return tconv_session_queue(get());
    }
    /* tconv_session_device. */
    tconv_device *device() const noexcept
    {
        return tconv_session_device(get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_session_create, with exceptions. */
    explicit session(int number = TCONV_DEVICE_DEFAULT)
    {
        tconv_error e;
        check(create(number, e), e);
    }
    /* tconv_session_run, with exceptions. */
    void run(const tconv_problem &problem, const tconv_arrays &arrays,
             const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(run(problem, arrays, options, e), e);
    }
#endif
};

/* session.h: a layer that runs often. The session must outlive it. */
class session_layer : public owner<tconv_session_layer, tconv_session_layer_release>
{
  public:
    session_layer() = default;
    /* tconv_session_layer_create. */
    tconv_status create(const session &on, bool constant_filter, tconv_error &e) noexcept
    {
        tconv_session_layer *made = nullptr;
        const tconv_status status =
            tconv_session_layer_create(on.get(), constant_filter, &made, &e);
        return take(status, made);
    }
    /* Not on a temporary session, which would end before the layer. */
    tconv_status create(const session &&, bool, tconv_error &) = delete;
    /* tconv_session_layer_run. */
    tconv_status run(const tconv_problem &problem, const tconv_arrays &arrays,
                     const tconv_plan_options *options, tconv_error &e) noexcept
    {
        return tconv_session_layer_run(get(), &problem, options, &arrays, &e);
    }
    /* tconv_session_layer_run_beside. The functions must not throw. */
    tconv_status run_beside(tconv_on_threads on_threads, void *pool, const tconv_problem &problem,
                            const tconv_arrays &arrays, const tconv_plan_options *options,
                            tconv_error &e) noexcept
    {
        return tconv_session_layer_run_beside(get(), on_threads, pool, &problem, options, &arrays,
                                              &e);
    }
    /* tconv_session_layer_refresh. */
    void refresh() noexcept
    {
        tconv_session_layer_refresh(get());
    }
    /* tconv_session_layer_watch. */
    void watch(bool on) noexcept
    {
        tconv_session_layer_watch(get(), on);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_session_layer_create, with exceptions. */
    explicit session_layer(const session &on, bool constant_filter = true)
    {
        tconv_error e;
        check(create(on, constant_filter, e), e);
    }
    /* Not on a temporary session. */
    explicit session_layer(const session &&, bool = true) = delete;
    /* tconv_session_layer_run, with exceptions. */
    void run(const tconv_problem &problem, const tconv_arrays &arrays,
             const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(run(problem, arrays, options, e), e);
    }
    /* tconv_session_layer_run_beside, with exceptions. */
    void run_beside(tconv_on_threads on_threads, void *pool, const tconv_problem &problem,
                    const tconv_arrays &arrays, const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(run_beside(on_threads, pool, problem, arrays, options, e), e);
    }
#endif
};

/* device.h: a device of the application's own context. */
class device : public owner<tconv_device, tconv_device_release>
{
  public:
    device() = default;
    /* tconv_device_create. */
    tconv_status create(cl_context context, cl_device_id id, tconv_error &e) noexcept
    {
        tconv_device *made = nullptr;
        const tconv_status status = tconv_device_create(context, id, &made, &e);
        return take(status, made);
    }
    /* tconv_device_set_trace. The callback must not throw. */
    tconv_status set_trace(uint32_t kinds, tconv_trace_callback callback, void *context,
                           tconv_error &e) noexcept
    {
        return tconv_device_set_trace(get(), kinds, callback, context, &e);
    }
    /* tconv_device_trace_replay. */
    void trace_replay(struct _cl_command_buffer_khr *command_buffer, const char *name,
                      cl_event event) noexcept
    {
        tconv_device_trace_replay(get(), command_buffer, name, event);
    }
    /* tconv_device_properties; not of an empty object. */
    const tconv_device_info &properties() const noexcept
    {
        return *tconv_device_properties(get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_device_create, with exceptions. */
    device(cl_context context, cl_device_id id)
    {
        tconv_error e;
        check(create(context, id, e), e);
    }
    /* tconv_device_set_trace, with exceptions. The callback must not throw. */
    void set_trace(uint32_t kinds, tconv_trace_callback callback, void *context)
    {
        tconv_error e;
        check(set_trace(kinds, callback, context, e), e);
    }
#endif
};

/* plan.h: a problem with its algorithm and compiled kernels. */
class plan : public owner<tconv_plan, tconv_plan_release>
{
  public:
    plan() = default;
    /* tconv_plan_create. */
    tconv_status create(tconv_device *on, const tconv_problem &problem,
                        const tconv_plan_options *options, tconv_error &e) noexcept
    {
        tconv_plan *made = nullptr;
        const tconv_status status = tconv_plan_create(on, &problem, options, &made, &e);
        return take(status, made);
    }
    /* tconv_plan_enqueue. */
    tconv_status enqueue(cl_command_queue queue, const tconv_args &args, cl_uint wait_count,
                         const cl_event *wait, cl_event *done, tconv_error &e) const noexcept
    {
        return tconv_plan_enqueue(get(), queue, &args, wait_count, wait, done, &e);
    }
    /* tconv_plan_geometry; not of an empty object. */
    const tconv_geometry &geometry() const noexcept
    {
        return *tconv_plan_geometry(get());
    }
    /* tconv_plan_algorithm. */
    const char *algorithm() const noexcept
    {
        return tconv_plan_algorithm(get());
    }
    /* tconv_plan_workspace_bytes. */
    uint64_t workspace_bytes() const noexcept
    {
        return tconv_plan_workspace_bytes(get());
    }
    /* tconv_plan_filter_bytes. */
    uint64_t filter_bytes() const noexcept
    {
        return tconv_plan_filter_bytes(get());
    }
    /* tconv_plan_is_stale. */
    bool is_stale() const noexcept
    {
        return tconv_plan_is_stale(get());
    }
    /* tconv_plan_record. */
    tconv_status record(struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
                        const tconv_args &args, uint32_t wait_count, const uint32_t *wait,
                        uint32_t *done, tconv_error &e) const noexcept
    {
        return tconv_plan_record(get(), command_buffer, queue, &args, wait_count, wait, done, &e);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_plan_create, with exceptions. */
    plan(tconv_device *on, const tconv_problem &problem,
         const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(create(on, problem, options, e), e);
    }
    /* tconv_plan_record, with exceptions. */
    void record(struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
                const tconv_args &args, uint32_t wait_count = 0, const uint32_t *wait = nullptr,
                uint32_t *done = nullptr) const
    {
        tconv_error e;
        check(record(command_buffer, queue, args, wait_count, wait, done, e), e);
    }
    /* tconv_plan_enqueue, with exceptions. */
    void enqueue(cl_command_queue queue, const tconv_args &args, cl_uint wait_count = 0,
                 const cl_event *wait = nullptr, cl_event *done = nullptr) const
    {
        tconv_error e;
        check(enqueue(queue, args, wait_count, wait, done, e), e);
    }
#endif
};

/* plan.h: a recorded execution whose tensors can be replaced. */
class recording : public owner<tconv_recording, tconv_recording_release>
{
  public:
    recording() = default;
    /* tconv_recording_create. */
    tconv_status create(const plan &of, struct _cl_command_buffer_khr *command_buffer,
                        cl_command_queue queue, const tconv_args &args, uint32_t wait_count,
                        const uint32_t *wait, uint32_t *done, tconv_error &e) noexcept
    {
        tconv_recording *made = nullptr;
        const tconv_status status = tconv_recording_create(of.get(), command_buffer, queue, &args,
                                                           wait_count, wait, done, &made, &e);
        return take(status, made);
    }
    /* tconv_recording_update. */
    tconv_status update(const tconv_args &args, tconv_error &e) noexcept
    {
        return tconv_recording_update(get(), &args, &e);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_recording_create, with exceptions. */
    recording(const plan &of, struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
              const tconv_args &args, uint32_t wait_count = 0, const uint32_t *wait = nullptr,
              uint32_t *done = nullptr)
    {
        tconv_error e;
        check(create(of, command_buffer, queue, args, wait_count, wait, done, e), e);
    }
    /* tconv_recording_update, with exceptions. */
    void update(const tconv_args &args)
    {
        tconv_error e;
        check(update(args, e), e);
    }
#endif
};

/* plan.h: weights as a plan's kernels read them. */
class packed_filter : public owner<tconv_packed_filter, tconv_packed_filter_release>
{
  public:
    packed_filter() = default;
    /* tconv_packed_filter_create. */
    tconv_status create(const plan &of, const tconv_buffer *storage, tconv_error &e) noexcept
    {
        tconv_packed_filter *made = nullptr;
        const tconv_status status = tconv_packed_filter_create(of.get(), storage, &made, &e);
        return take(status, made);
    }
    /* tconv_packed_filter_enqueue_pack. */
    tconv_status enqueue_pack(cl_command_queue queue, const tconv_buffer &weights,
                              cl_uint wait_count, const cl_event *wait, cl_event *done,
                              tconv_error &e) noexcept
    {
        return tconv_packed_filter_enqueue_pack(get(), queue, &weights, wait_count, wait, done, &e);
    }
    /* tconv_packed_filter_fits. */
    bool fits(const plan &other) const noexcept
    {
        return tconv_packed_filter_fits(get(), other.get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_packed_filter_create, with exceptions. */
    explicit packed_filter(const plan &of, const tconv_buffer *storage = nullptr)
    {
        tconv_error e;
        check(create(of, storage, e), e);
    }
    /* tconv_packed_filter_enqueue_pack, with exceptions. */
    void enqueue_pack(cl_command_queue queue, const tconv_buffer &weights, cl_uint wait_count = 0,
                      const cl_event *wait = nullptr, cl_event *done = nullptr)
    {
        tconv_error e;
        check(enqueue_pack(queue, weights, wait_count, wait, done, e), e);
    }
#endif
};

/* device_layer.h: a problem with its weights; the workspace comes from the device's pool. */
class device_layer : public owner<tconv_device_layer, tconv_device_layer_release>
{
  public:
    device_layer() = default;
    /* tconv_device_layer_create. */
    tconv_status create(tconv_device *on, cl_command_queue queue, const tconv_problem &problem,
                        const tconv_plan_options *options, const tconv_weights &weights,
                        tconv_error &e) noexcept
    {
        tconv_device_layer *made = nullptr;
        const tconv_status status =
            tconv_device_layer_create(on, queue, &problem, options, &weights, &made, &e);
        return take(status, made);
    }
    /* tconv_device_layer_share: this layer shares the weights of `other`. */
    tconv_status share(const device_layer &other, const tconv_problem &problem,
                       const tconv_plan_options *options, tconv_error &e) noexcept
    {
        tconv_device_layer *made = nullptr;
        const tconv_status status =
            tconv_device_layer_share(other.get(), &problem, options, &made, &e);
        return take(status, made);
    }
    /* tconv_device_layer_enqueue. */
    tconv_status enqueue(cl_command_queue queue, const tconv_buffer &data,
                         const tconv_buffer &output, const tconv_buffer *residual,
                         cl_uint wait_count, const cl_event *wait, cl_event *done,
                         tconv_error &e) noexcept
    {
        return tconv_device_layer_enqueue(get(), queue, &data, &output, residual, wait_count, wait,
                                          done, &e);
    }
    /* tconv_device_layer_set_weights. */
    tconv_status set_weights(cl_command_queue queue, const tconv_weights &weights,
                             cl_uint wait_count, const cl_event *wait, cl_event *done,
                             tconv_error &e) noexcept
    {
        return tconv_device_layer_set_weights(get(), queue, &weights, wait_count, wait, done, &e);
    }
    /* tconv_plan_geometry of the layer's plan; not of an empty object. */
    const tconv_geometry &geometry() const noexcept
    {
        return *tconv_plan_geometry(tconv_device_layer_plan(get()));
    }
    /* tconv_device_layer_plan, for functions of the C interface. */
    const tconv_plan *plan() const noexcept
    {
        return tconv_device_layer_plan(get());
    }
    /* tconv_device_layer_bytes. */
    uint64_t bytes() const noexcept
    {
        return tconv_device_layer_bytes(get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_device_layer_create, with exceptions. */
    device_layer(tconv_device *on, cl_command_queue queue, const tconv_problem &problem,
                 const tconv_weights &weights, const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(create(on, queue, problem, options, weights, e), e);
    }
    /* tconv_device_layer_share, with exceptions. */
    device_layer(const device_layer &other, const tconv_problem &problem,
                 const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(share(other, problem, options, e), e);
    }
    /* tconv_device_layer_enqueue, with exceptions. */
    void enqueue(cl_command_queue queue, const tconv_buffer &data, const tconv_buffer &output,
                 cl_uint wait_count = 0, const cl_event *wait = nullptr, cl_event *done = nullptr,
                 const tconv_buffer *residual = nullptr)
    {
        tconv_error e;
        check(enqueue(queue, data, output, residual, wait_count, wait, done, e), e);
    }
    /* tconv_device_layer_set_weights, with exceptions. */
    void set_weights(cl_command_queue queue, const tconv_weights &weights, cl_uint wait_count = 0,
                     const cl_event *wait = nullptr, cl_event *done = nullptr)
    {
        tconv_error e;
        check(set_weights(queue, weights, wait_count, wait, done, e), e);
    }
#endif
};

/* device_layer.h: a recorded execution of a layer. Its command buffer must be released before. */
class layer_recording : public owner<tconv_layer_recording, tconv_layer_recording_release>
{
  public:
    layer_recording() = default;
    /* tconv_device_layer_record. */
    tconv_status create(const device_layer &of, struct _cl_command_buffer_khr *command_buffer,
                        cl_command_queue queue, const tconv_args &args, bool replaceable,
                        uint32_t wait_count, const uint32_t *wait, uint32_t *done,
                        tconv_error &e) noexcept
    {
        tconv_layer_recording *made = nullptr;
        const tconv_status status = tconv_device_layer_record(
            of.get(), command_buffer, queue, &args, replaceable, wait_count, wait, done, &made, &e);
        return take(status, made);
    }
    /* tconv_layer_recording_update; with the weights of a layer, or with those of before. */
    tconv_status update(const device_layer *of, const tconv_args &args, tconv_error &e) noexcept
    {
        return tconv_layer_recording_update(get(), of == nullptr ? nullptr : of->get(), &args, &e);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    /* tconv_device_layer_record, with exceptions. */
    layer_recording(const device_layer &of, struct _cl_command_buffer_khr *command_buffer,
                    cl_command_queue queue, const tconv_args &args, bool replaceable = false,
                    uint32_t wait_count = 0, const uint32_t *wait = nullptr,
                    uint32_t *done = nullptr)
    {
        tconv_error e;
        check(create(of, command_buffer, queue, args, replaceable, wait_count, wait, done, e), e);
    }
    /* tconv_layer_recording_update, with exceptions. */
    void update(const device_layer *of, const tconv_args &args)
    {
        tconv_error e;
        check(update(of, args, e), e);
    }
#endif
};

} // namespace tconv

#endif
