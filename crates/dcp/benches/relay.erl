%% What a packet costs a proxy that is one Erlang process: it asks for a packet's header, then for its body, decodes both, and
%% passes the packet on by itself, with socket buffers of 64 KiB. Three programs, on one machine:
%%
%%   erlc relay.erl
%%   erl -noshell -run relay main sink 47701 -s init stop
%%   erl -noshell -run relay main relay 47702 47701 -s init stop
%%   erl -noshell -run relay main source 47702 300000 -s init stop
%%
%% The relay prints the time for each packet of 1095 bytes: a mutation with a value of 1 KiB.
-module(relay).
-export([main/1]).

main(["sink", Port]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), [binary, {active, false}, {reuseaddr, true}]),
    {ok, Socket} = gen_tcp:accept(Listener),
    sink(Socket);
main(["relay", Port, To]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), [{reuseaddr, true} | options()]),
    {ok, Source} = gen_tcp:accept(Listener),
    {ok, Destination} = gen_tcp:connect("127.0.0.1", list_to_integer(To), options()),
    statistics(wall_clock),
    relay(Source, Destination, 0);
main(["source", Port, Packets]) ->
    {ok, Socket} = gen_tcp:connect("127.0.0.1", list_to_integer(Port), [binary, {active, false}]),
    Body = <<0:(31 * 8), 0:(16 * 8), 0:(1024 * 8)>>,
    Mutation = <<16#80, 16#57, 16:16, 31, 0, 0:16, (byte_size(Body)):32, 1:32, 0:64, Body/binary>>,
    source(Socket, binary:copy(Mutation, 100), list_to_integer(Packets) div 100).

options() ->
    [binary, {active, false}, {packet, raw}, {nodelay, true}, {recbuf, 65536}, {sndbuf, 65536}].

sink(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, _} -> sink(Socket);
        _ -> ok
    end.

source(Socket, _, 0) -> gen_tcp:close(Socket);
source(Socket, Packets, Left) ->
    ok = gen_tcp:send(Socket, Packets),
    source(Socket, Packets, Left - 1).

relay(Source, Destination, Count) ->
    case gen_tcp:recv(Source, 24) of
        {ok, <<Magic, Opcode, KeyLength:16, ExtrasLength, Datatype, Vbucket:16, Length:32, Opaque:32, Cas:64>> = Header} ->
            {ok, Body} = gen_tcp:recv(Source, Length),
            <<Extras:ExtrasLength/binary, Key:KeyLength/binary, Value/binary>> = Body,
            put(last, {Magic, Opcode, Datatype, Vbucket, Opaque, Cas, Extras, Key, Value}),
            ok = gen_tcp:send(Destination, [Header, Body]),
            relay(Source, Destination, Count + 1);
        _ ->
            {_, WallMs} = statistics(wall_clock),
            io:format("~p packets, ~.2f us for each~n", [Count, WallMs * 1000 / max(Count, 1)])
    end.
