// Package wire lets a Go host, or a provider, speak the plugin's protocol without generated code: it compiles the
// repository's own .proto files when it is loaded, and takes and gives messages as JSON.
package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"

	"github.com/bufbuild/protocompile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Names of the services that the tests call or serve.
const (
	ToolService   = "pluggableharness.tool.v1.ToolService"
	KernelService = "pluggableharness.kernel.v1.KernelCallbackService"
)

// Object is a message in protobuf's JSON form.
type Object = map[string]any

// Services holds the compiled services by full name.
type Services map[string]protoreflect.ServiceDescriptor

// Load compiles the .proto files that define the services above.
func Load() (Services, error) {
	_, here, _, _ := runtime.Caller(0)
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{filepath.Join(filepath.Dir(here), "../../../proto")},
		}),
	}
	files, err := compiler.Compile(context.Background(),
		"pluggableharness/tool/v1/tool.proto", "pluggableharness/kernel/v1/kernel.proto")
	if err != nil {
		return nil, err
	}
	services := Services{}
	for _, file := range files {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			services[string(service.FullName())] = service
		}
	}
	return services, nil
}

func (s Services) method(service, name string) (protoreflect.MethodDescriptor, error) {
	descriptor, ok := s[service]
	if !ok {
		return nil, fmt.Errorf("no service %s in the .proto files", service)
	}
	method := descriptor.Methods().ByName(protoreflect.Name(name))
	if method == nil {
		return nil, fmt.Errorf("no method %s in %s", name, service)
	}
	return method, nil
}

func encode(descriptor protoreflect.MessageDescriptor, object Object) (*dynamicpb.Message, error) {
	if object == nil {
		object = Object{}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	message := dynamicpb.NewMessage(descriptor)
	return message, protojson.Unmarshal(text, message)
}

func decode(message *dynamicpb.Message) (Object, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	var object Object
	return object, json.Unmarshal(text, &object)
}

// Call makes a unary call.
func (s Services) Call(ctx context.Context, conn grpc.ClientConnInterface, service, name string, request Object) (Object, error) {
	method, err := s.method(service, name)
	if err != nil {
		return nil, err
	}
	in, err := encode(method.Input(), request)
	if err != nil {
		return nil, err
	}
	out := dynamicpb.NewMessage(method.Output())
	if err := conn.Invoke(ctx, "/"+service+"/"+name, in, out); err != nil {
		return nil, err
	}
	return decode(out)
}

// Stream is a running server-streaming call.
type Stream struct {
	stream grpc.ClientStream
	output protoreflect.MessageDescriptor
}

// Open starts a server-streaming call.
func (s Services) Open(ctx context.Context, conn grpc.ClientConnInterface, service, name string, request Object) (*Stream, error) {
	method, err := s.method(service, name)
	if err != nil {
		return nil, err
	}
	in, err := encode(method.Input(), request)
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+service+"/"+name)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(in); err != nil {
		return nil, err
	}
	return &Stream{stream, method.Output()}, stream.CloseSend()
}

// Next returns the next message, or io.EOF after the last one.
func (s *Stream) Next() (Object, error) {
	out := dynamicpb.NewMessage(s.output)
	if err := s.stream.RecvMsg(out); err != nil {
		return nil, err
	}
	return decode(out)
}

// All returns the messages to the stream's end.
func (s *Stream) All() ([]Object, error) {
	var all []Object
	for {
		next, err := s.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, next)
	}
}

// Handlers answer the methods of a service, by name. An error that is no status of gRPC becomes one.
type Handlers struct {
	Unary     map[string]func(context.Context, Object) (Object, error)
	Streaming map[string]func(context.Context, Object, func(Object) error) error
}

// Register has a server answer a service with these handlers; methods without one are unimplemented.
func (s Services) Register(server grpc.ServiceRegistrar, service string, handlers Handlers) error {
	desc := grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
	for name, handle := range handlers.Unary {
		method, err := s.method(service, name)
		if err != nil {
			return err
		}
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(_ any, ctx context.Context, decodeInto func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				request, err := receive(method, decodeInto)
				if err != nil {
					return nil, err
				}
				response, err := handle(ctx, request)
				if err != nil {
					return nil, err
				}
				return encode(method.Output(), response)
			},
		})
	}
	for name, handle := range handlers.Streaming {
		method, err := s.method(service, name)
		if err != nil {
			return err
		}
		desc.Streams = append(desc.Streams, grpc.StreamDesc{
			StreamName:    name,
			ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				request, err := receive(method, stream.RecvMsg)
				if err != nil {
					return err
				}
				return handle(stream.Context(), request, func(response Object) error {
					out, err := encode(method.Output(), response)
					if err != nil {
						return err
					}
					return stream.SendMsg(out)
				})
			},
		})
	}
	server.RegisterService(&desc, nil)
	return nil
}

func receive(method protoreflect.MethodDescriptor, decodeInto func(any) error) (Object, error) {
	in := dynamicpb.NewMessage(method.Input())
	if err := decodeInto(in); err != nil {
		return nil, err
	}
	request, err := decode(in)
	if err != nil {
		// A number that is none, for one, has no form in JSON.
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return request, nil
}
